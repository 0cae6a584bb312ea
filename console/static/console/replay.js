// Plays a recording: the index names its moments, parts bring the output from any place on.
import { actions } from "./keys.js";
import { makeScreen } from "./live/screen.js";
import { Player, fetched } from "./screens/player.js";

const LOOK_MILLISECONDS = 1000; // between two looks for new screens
const $ = (id) => document.getElementById(id);
const urls = $("replay").dataset;

let player;

const clockOf = (time) => new Date((player.index.began_at + time) * 1000).toISOString();

function draw() {
  const [moment, day] = [0, 11].map((from) => clockOf(player.now).slice(from, 19));
  $("seek").value = player.now;
  $("seek").setAttribute("aria-valuetext", `${day} UTC`);
  const [now, end] = [player.now, player.index.seconds].map((each) => each.toFixed(1));
  $("clock").value = `${day} UTC · ${now} of ${end} s`;
  $("moment").href = `#t=${moment}`;
}

function failed(error) {
  play(false);
  $("note").textContent = `The recording could not be read: ${error.message}. Play tries again.`;
}

async function play(isPlaying) {
  const wasPlaying = player.isPlaying;
  player.isPlaying = isPlaying;
  $("play").textContent = isPlaying ? "Pause" : "Play";
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
    const done = (player.screens.at(-1)?.time ?? 0) / Math.max(player.index.seconds, 1);
    $("screens").value = `Preparing exact jumps: ${Math.min(Math.floor(100 * done), 99)} %`;
    await new Promise((again) => { setTimeout(again, LOOK_MILLISECONDS); });
  }
  if (player.isGuess && !player.isPlaying) await seek(player.now);
  $("screens").value = player.isGuess ? "Jumps show what the last 256 KiB of output drew." : "";
}

// The moment that the address names: a day and its time in UTC, a time of the first 24 hours, or
// the beginning.
function momentOf(hash) {
  const [time, day = clockOf(0).slice(0, 10)] = hash.slice(3).split("T").reverse();
  const seconds = Date.parse(`${day}T${time}.999Z`) / 1000 - player.index.began_at;
  return (seconds < 0 && !hash.includes("T") ? seconds + 86400 : seconds) || 0;
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
    fetched(urls.index)]);
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

begin().catch(({ message }) => { $("note").textContent = `The replay did not begin: ${message}`; });
