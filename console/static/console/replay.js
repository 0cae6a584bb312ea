// Plays a recording: the index names its moments, parts bring the output from any place on.
import { actions } from "./keys.js";
import { makeScreen } from "./live/screen.js";
import { Player } from "./screens/player.js";

const LOOK_MILLISECONDS = 1000; // between two looks for new screens
const $ = (id) => document.getElementById(id);
const urls = $("replay").dataset;

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
  if (player.now >= player.index.seconds) await seek(0);
  let before = performance.now();
  while (player.isPlaying) {
    const now = await new Promise(requestAnimationFrame);
    const seconds = (Math.max(0, now - before) / 1000) * $("speed").value;
    await player.step(seconds, $("idle").checked).catch(failed);
    before = now;
    if (player.now >= player.index.seconds) play(false);
    draw();
  }
}

async function seek(time) {
  await player.seek(time).catch(failed);
  draw();
}

// Until all screens are made, a jump far into the recording shows what the last output drew.
async function awaitScreens() {
  while (await player.learn()) {
    const last = player.screens.at(-1) ?? { time: 0 };
    const done = Math.floor((100 * last.time) / Math.max(player.index.seconds, 1));
    $("screens").value = `Preparing exact jumps: ${Math.min(done, 99)} %`;
    await new Promise((again) => { setTimeout(again, LOOK_MILLISECONDS); });
  }
  $("screens").value = "";
  if (player.isGuess && !player.isPlaying) await seek(player.now);
  if (player.isGuess) $("screens").value = "Jumps show what the last 256 KiB of output drew.";
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
  if (to !== undefined) seek(to);
}

Object.assign(actions, {
  " ": () => play(!player.isPlaying),
  ArrowLeft: () => seek(player.now - 5),
  ArrowRight: () => seek(player.now + 5),
  "[": () => jump(-1),
  "]": () => jump(1),
});

function addMarkers({ markers, seconds }) {
  for (const { time, kind, label } of markers) {
    const tick = $("ticks").appendChild(document.createElement("i"));
    tick.className = kind;
    tick.style.left = `${(100 * time) / (seconds || 1)}%`;
    const button = document.createElement("button");
    button.textContent = `${time.toFixed(1)} s · ${label}`;
    button.addEventListener("click", () => seek(time));
    $("markers").appendChild(document.createElement("li")).append(button);
  }
}

async function begin() {
  const [term, index] = await Promise.all([
    makeScreen($("screen"), () => {}, { screenReaderMode: true, disableStdin: true }),
    fetch(urls.index).then((answer) => answer.json())]);
  player = new Player(index, term, urls);
  $("seek").max = Math.ceil(index.seconds * 10) / 10;
  if (!index.is_host_time) $("note").textContent = "The times are the server's.";
  addMarkers(index);
  $("play").addEventListener("click", () => play(!player.isPlaying));
  $("seek").addEventListener("input", () => seek(+$("seek").value));
  window.addEventListener("hashchange", () => seek(momentOf(location.hash)));
  term.attachCustomKeyEventHandler(() => false);
  await seek(momentOf(location.hash));
  await awaitScreens();
}

begin().catch((error) => { $("note").textContent = `The replay did not begin: ${error.message}`; });
