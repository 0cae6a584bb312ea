// Plays a recording: the index names its moments, parts bring the output from any place on.
import { stampStyles } from "./style_nonce.js";

const PARTS_AHEAD = 2000; // pieces of output that wait to be shown before more are fetched
const IDLE_SECONDS = 1.5;
const $ = (id) => document.getElementById(id);
const { index: indexUrl, part: partUrl, terminal, pipes } = $("replay").dataset;

async function fetched(url) {
  const answer = await fetch(url);
  if (!answer.ok) throw new Error(`the server answered ${answer.status}`);
  return answer.json();
}

const bytesOf = (base64) => Uint8Array.from(atob(base64), (char) => char.charCodeAt(0));

class Player {
  constructor(index, term) {
    Object.assign(this, { index, term, now: 0, isPlaying: false });
    this.round = 0; // of seeks: what an older one fetched is dropped
    this.resizes = index.markers.filter((marker) => marker.kind === "resize");
    this.restart({ stdout: 0, stderr: 0 });
  }

  restart({ stdout, stderr }) {
    this.round += 1;
    this.queue = [];
    this.next = { stdout, stderr };
    this.fetching = null;
    this.term.reset();
  }

  async more() {
    if (this.next === null) return;
    this.fetching ??= this.fetchPart(this.round);
    await this.fetching;
  }

  async fetchPart(round) {
    const { stdout, stderr } = this.next;
    try {
      const part = await fetched(`${partUrl}?stdout=${stdout}&stderr=${stderr}`);
      if (round !== this.round) return;
      part.times.forEach((time, i) => this.queue.push([time, part.data[i]]));
      this.next = part.stdout === null ? null : part;
    } finally {
      if (round === this.round) this.fetching = null;
    }
  }

  resize() {
    const last = this.resizes.findLast((marker) => marker.time <= this.now) ?? this.index;
    if (this.term.cols !== last.cols || this.term.rows !== last.rows) {
      this.term.resize(last.cols, last.rows);
    }
  }

  // Shows all output up to now. True if none of it is left to fetch.
  show() {
    let count = 0;
    while (count < this.queue.length && this.queue[count][0] <= this.now) count += 1;
    for (const [, data] of this.queue.splice(0, count)) this.term.write(bytesOf(data));
    return this.queue.length > 0 || this.next === null;
  }

  async seek(time) {
    const { places, seconds, lead_bytes: lead } = this.index;
    this.now = Math.min(Math.max(time, 0), seconds);
    const at = places.findLast((place) => place.time <= this.now) ?? places[0];
    const from = places.findLast((place) => place.stdout <= at.stdout - lead);
    this.restart(from ?? { stdout: 0, stderr: 0 });
    const { round } = this;
    this.resize();
    while (round === this.round && !this.show()) await this.more();
    draw();
  }

  async step(seconds) {
    this.now += seconds * $("speed").value;
    const upcoming = this.queue[0]?.[0] ?? (this.next === null ? this.index.seconds : this.now);
    if ($("idle").checked && upcoming - this.now > IDLE_SECONDS) this.now = upcoming - 0.3;
    this.resize();
    const { round } = this;
    if (!this.show()) await this.more();
    else if (this.queue.length < PARTS_AHEAD) this.more().catch(failed);
    if (round === this.round && this.now >= this.index.seconds) play(false);
  }
}

let player;

const dateOf = (time) => new Date((player.index.began_at + time) * 1000);

function draw() {
  const day = dateOf(player.now).toISOString().slice(11, 19);
  $("seek").value = player.now;
  $("seek").setAttribute("aria-valuetext", `${day} UTC`);
  $("clock").value = `${day} UTC · ${player.now.toFixed(1)} of ${player.index.seconds.toFixed(1)} s`;
  $("moment").href = `#t=${day}`;
}

function failed(error) {
  play(false);
  $("note").textContent = `The recording could not be read: ${error.message}. Play tries again.`;
}

async function play(isPlaying) {
  const wasPlaying = player.isPlaying;
  player.isPlaying = isPlaying;
  $("play").textContent = isPlaying ? "Pause" : "Play";
  $("play").setAttribute("aria-pressed", isPlaying);
  if (!isPlaying || wasPlaying) return;
  $("note").textContent = "";
  if (player.now >= player.index.seconds) await player.seek(0);
  let before = performance.now();
  while (player.isPlaying) {
    const now = await new Promise(requestAnimationFrame);
    await player.step(Math.max(0, now - before) / 1000).catch(failed);
    before = now;
    draw();
  }
}

// The moment that the address names: a time of day in UTC, or the beginning.
function momentOf(hash) {
  const found = /^#t=(\d\d):(\d\d):(\d\d)$/.exec(hash);
  if (!found) return 0;
  const date = dateOf(0);
  date.setUTCHours(+found[1], +found[2], +found[3], 999);
  const seconds = date.getTime() / 1000 - player.index.began_at;
  return seconds < 0 ? seconds + 86400 : seconds;
}

function jump(by) {
  const times = player.index.markers.map((marker) => marker.time);
  const grace = player.isPlaying ? 0.5 : 0.001; // a second press goes on back while it plays
  const to = by > 0 ? times.find((time) => time > player.now)
    : times.findLast((time) => time < player.now - grace);
  if (to !== undefined) player.seek(to).catch(failed);
}

const keys = {
  " ": () => play(!player.isPlaying),
  ArrowLeft: () => player.seek(player.now - 5).catch(failed),
  ArrowRight: () => player.seek(player.now + 5).catch(failed),
  "[": () => jump(-1),
  "]": () => jump(1),
};

function addMarkers({ markers, seconds }) {
  for (const { time, kind, label } of markers) {
    const tick = document.createElement("i");
    tick.className = kind;
    tick.style.left = `${seconds ? (100 * time) / seconds : 0}%`;
    $("ticks").append(tick);
    const button = document.createElement("button");
    button.textContent = `${time.toFixed(1)} s · ${label}`;
    button.addEventListener("click", () => player.seek(time).catch(failed));
    const item = document.createElement("li");
    item.append(button);
    $("markers").append(item);
  }
}

async function begin() {
  stampStyles();
  const [{ Terminal }, index] = await Promise.all([import(terminal), fetched(indexUrl)]);
  const { rows, cols } = index;
  const term = new Terminal({ rows, cols, disableStdin: true, convertEol: Boolean(pipes),
    screenReaderMode: true, scrollback: 5000 });
  term.open($("screen"));
  player = new Player(index, term);
  $("seek").max = Math.ceil(index.seconds * 10) / 10;
  if (!index.is_host_time) $("note").textContent = "The times are the server's.";
  addMarkers(index);
  $("play").addEventListener("click", () => play(!player.isPlaying));
  $("seek").addEventListener("input", () => player.seek(+$("seek").value).catch(failed));
  window.addEventListener("hashchange", () => player.seek(momentOf(location.hash)).catch(failed));
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || !keys[event.key]) return;
    if (event.target.closest("button, a, select, input:not([type=range]), dialog")) return;
    event.preventDefault();
    keys[event.key]();
  });
  await player.seek(momentOf(location.hash));
}

begin().catch((error) => { $("note").textContent = `The replay did not begin: ${error.message}`; });
