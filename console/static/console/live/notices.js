// The browser's own notice, and a sound, when more wants a person than before. Only while a page of
// the console is open; each browser remembers what its person wants.
const SOUND = "holdline.sound";
let before = null;

function sound() {
  const audio = new AudioContext();
  const tone = audio.createOscillator();
  tone.frequency.value = 660;
  tone.connect(audio.destination);
  tone.start();
  tone.stop(audio.currentTime + 0.15);
}

export function notice(count, text) {
  const isMore = before !== null && count > before;
  before = count;
  if (!isMore) return;
  if (localStorage.getItem(SOUND)) sound();
  if (document.hidden && globalThis.Notification?.permission === "granted")
    new Notification("Holdline", { body: text, tag: "holdline-waiting" });
}

const place = document.querySelector("#notices");
if (place) {
  const button = place.querySelector("#notify");
  const box = place.querySelector("#sound");
  const show = () => { button.hidden = globalThis.Notification?.permission !== "default"; };
  button.addEventListener("click", () => Notification.requestPermission().then(show));
  box.checked = Boolean(localStorage.getItem(SOUND));
  box.addEventListener("change", () => {
    localStorage.setItem(SOUND, box.checked ? "1" : "");
  });
  show();
  place.hidden = false;
}
