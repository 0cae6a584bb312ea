// The browser's own notice, and a sound, when more wants a person than before. Only while a page
// of the console is open; each browser remembers what its person wants.
const SOUND = "holdline.sound";
let before = null;

export function notice(count, text, sound) {
  const isMore = before !== null && count > before;
  before = count;
  if (!isMore) return;
  // A browser may refuse to play before its person has touched the page.
  if (localStorage.getItem(SOUND)) new Audio(sound).play().catch(() => undefined);
  if (document.hidden && globalThis.Notification?.permission === "granted")
    new Notification("Holdline", { body: text, tag: "holdline-waiting" });
}

const place = document.querySelector("#notices");
if (place) {
  const [button, box] = place.querySelectorAll("#notify, #sound");
  const show = () => { button.hidden = globalThis.Notification?.permission !== "default"; };
  button.addEventListener("click", () => Notification.requestPermission().then(show));
  box.checked = Boolean(localStorage.getItem(SOUND));
  box.addEventListener("change", () => localStorage.setItem(SOUND, box.checked ? "1" : ""));
  show();
  place.hidden = false;
}
