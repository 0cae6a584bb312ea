// Keys of every page; a page adds its own. Rows are elements with data-row; the first link in a row
// opens the row.
const rows = () => [...document.querySelectorAll("[data-row]")].filter((row) => row.offsetParent);
const isTyping = ({ target, key }) => target.closest(
  "input:not([type=range]), textarea:not([readonly]), select, dialog[open], [data-live] .xterm")
  || (key === " " && target.closest("button"));
let isGoing = false;

function step(by) {
  const all = rows();
  const at = all.indexOf(document.activeElement.closest("[data-row]"));
  const row = all[at < 0 ? 0 : Math.min(Math.max(at + by, 0), all.length - 1)];
  (row?.querySelector("a") ?? row)?.focus();
}

// Only in the row that has the focus: nobody approves what is not marked.
const answer = (value) => document.activeElement.closest("[data-row]")
  ?.querySelector(`button[value=${value}]`)?.click();

export const actions = {
  j: () => step(1),
  k: () => step(-1),
  a: () => answer("approve"),
  d: () => answer("deny"),
  "/": () => document.querySelector("input[type=search]")?.focus(),
  "?": () => document.querySelector("#keys").showModal(),
};

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || isTyping(event)) return;
  const place = isGoing && document.querySelector(`[data-key="${CSS.escape(event.key)}"]`);
  const action = place ? () => place.click() : actions[event.key];
  isGoing = event.key === "g" && !isGoing;
  if (!action) return;
  event.preventDefault();
  action();
});
