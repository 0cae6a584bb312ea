// The board: rows come over the socket, the filters live in the address.
import { Socket } from "./socket.js";
import { showCounts } from "./waiting.js";
import { ago, left, seconds, WAITS } from "./words.js";

const rows = new Map();
const shown = new Map();
const form = document.querySelector("#filters");
const groups = [...document.querySelectorAll("[data-group]")];
const chosen = () => Object.fromEntries(new FormData(form));

function matches(row, filter) {
  const text = `${row.host} ${row.prompt} ${row.command}`.toLowerCase();
  return (!filter.waits || row.waits === filter.waits)
    && (!filter.host || row.host === filter.host)
    && (!filter.since || Date.now() - new Date(row.since) >= seconds(filter.since) * 1000)
    && (filter.q ?? "").toLowerCase().split(/\s+/).every((word) => text.includes(word));
}

function element(row) {
  let made = shown.get(row.id);
  if (!made) {
    made = document.querySelector("#row").content.firstElementChild.cloneNode(true);
    made.querySelector("a").href = form.dataset.session.replace(/0{8}-.*-0{12}/, row.id);
    shown.set(row.id, made);
  }
  const texts = {
    ...row,
    since: row.waits ? `for ${ago(row.since)}` : `printed ${ago(row.since)} ago`,
    left: left(row.ends_at, row.is_paused),
    waits: row.waits === "taken" ? `${row.operator} types` : (row.waits && `waits for ${WAITS[row.waits]}`),
    started_by: row.started_by && `by ${row.started_by}`,
    last_line: row.last_line === row.prompt ? "" : row.last_line,
  };
  for (const place of made.querySelectorAll("[data-text]")) {
    const text = texts[place.dataset.text];
    if (place.textContent !== text) place.textContent = text;
  }
  made.dataset.waits = row.waits;
  return made;
}

function put(list, wanted) {
  const same = list.children.length === wanted.length
    && wanted.every((each, at) => each === list.children[at]);
  if (same) return;
  const focused = document.activeElement;
  list.replaceChildren(...wanted);
  if (list.contains(focused)) focused.focus();
}

function draw() {
  const filter = chosen();
  const wanted = [...rows.values()].filter((row) => matches(row, filter))
    .sort((one, other) => (one.since < other.since ? -1 : 1));
  for (const group of groups) {
    const own = wanted.filter((row) => row.group === group.dataset.group);
    put(group.querySelector("ul"), own.map(element));
    group.hidden = !own.length;
    group.querySelector(".count").textContent = own.length;
  }
  const hidden = rows.size - wanted.length;
  document.querySelector("#none").hidden = wanted.length > 0;
  document.querySelector("#none").textContent = hidden
    ? "No session matches these filters." : "No session is active.";
  document.querySelector("#hidden").textContent = hidden ? `${hidden} not shown` : "";
}

function offerHosts() {
  const hosts = [...new Set([...rows.values()].map((row) => row.host))].sort();
  const select = form.elements.host;
  const known = [...select.options].map((option) => option.value);
  for (const host of hosts) if (!known.includes(host)) select.add(new Option(host, host));
}

function readAddress() {
  for (const [name, value] of new URLSearchParams(location.search)) {
    const field = form.elements[name];
    if (!field) continue;
    if (field.options && ![...field.options].some((option) => option.value === value))
      field.add(new Option(value, value));
    field.value = value;
  }
}

form.addEventListener("input", () => {
  const kept = Object.entries(chosen()).filter(([, value]) => value);
  history.replaceState(null, "", kept.length ? `?${new URLSearchParams(kept)}` : location.pathname);
  draw();
});
form.addEventListener("submit", (event) => event.preventDefault());
document.addEventListener("keydown", (event) => {
  const link = document.activeElement.closest("[data-row]")?.querySelector("a");
  if (event.key === "t" && link && !event.ctrlKey && !event.metaKey && !event.altKey)
    location.assign(`${link.href}#take`);
});

readAddress();
const socket = new Socket({
  board(message) {
    if (message.is_whole) rows.clear();
    for (const id of message.gone) rows.delete(id);
    for (const row of message.rows) rows.set(row.id, row);
    for (const id of shown.keys()) if (!rows.has(id)) shown.delete(id);
    offerHosts();
    draw();
    showCounts(message);
    socket.send("board_seen", { version: message.version });
  },
}, (opened) => opened.send("watch_board"));
setInterval(draw, 1000);
