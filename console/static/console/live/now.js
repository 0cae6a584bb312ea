// The board: rows come over the socket, those that the filters in the address leave.
import { actions } from "../keys.js";
import { Socket } from "./socket.js";
import { showCounts } from "./waiting.js";
import { fill, tell } from "./words.js";

const rows = new Map(); // by id: what the server said of a session, and its element
const form = document.querySelector("#filters");
const groups = [...document.querySelectorAll("[data-group]")];
let hidden = 0;

function keep(row) {
  const element = rows.get(row.id)?.element
    ?? document.querySelector("#row").content.firstElementChild.cloneNode(true);
  element.querySelector("a").href = form.dataset.session.replace(/0{8}-.*-0{12}/, row.id);
  element.dataset.waits = row.waits;
  rows.set(row.id, { row, element });
}

function put(list, wanted) {
  const isThere = (each, at) => each === list.children[at];
  if (list.children.length === wanted.length && wanted.every(isThere)) return;
  const focused = document.activeElement;
  list.replaceChildren(...wanted);
  if (list.contains(focused)) focused.focus();
}

function draw() {
  const all = [...rows.values()].sort((one, other) => (one.row.since < other.row.since ? -1 : 1));
  for (const { row, element } of all) fill(element, row);
  for (const group of groups) {
    const own = all.filter(({ row }) => row.group === group.dataset.group);
    put(group.querySelector("ul"), own.map(({ element }) => element));
    group.hidden = !own.length;
    group.querySelector(".count").textContent = own.length;
  }
  const none = hidden ? "No session matches these filters." : "No session is active.";
  tell(document.querySelector("#none"), all.length ? "" : none);
  tell(document.querySelector("#hidden"), hidden ? `${hidden} not shown` : "");
}

form.addEventListener("change", () => form.requestSubmit());
actions.t = () => {
  const link = document.activeElement.closest("[data-row]")?.querySelector("a");
  if (link) location.assign(`${link.href}#take`);
};

const begin = (socket) => socket.send("watch_board", Object.fromEntries(new FormData(form)));
new Socket({
  board(message) {
    if (message.is_whole) rows.clear();
    for (const id of message.gone) rows.delete(id);
    message.rows.forEach(keep);
    hidden = message.hidden;
    draw();
    showCounts(message);
  },
}, begin);
setInterval(() => rows.size && draw(), 1000);
