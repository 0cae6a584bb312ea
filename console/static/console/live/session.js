// One session: its screen, its prompt, and the keyboard.
import { actions } from "../keys.js";
import { RESET } from "../screens/state.mjs";
import { Keyboard } from "./keyboard.js";
import { lookedAt, needsLook } from "./pasted.js";
import { makeScreen } from "./screen.js";
import { Socket } from "./socket.js";
import { showCounts } from "./waiting.js";
import { fill, tell } from "./words.js";

const find = (selector) => document.querySelector(selector);
const [page, place] = [find("[data-live]"), find("#screen")];
let [session, keyboard, wantsLine, isListed] = [null, null, false, false];
const offsets = { stdout: null, stderr: null };

const say = (text) => tell(find("#notice"), text);

function draw() {
  if (!session) return;
  const isMine = keyboard.isHeld;
  const mine = { who: "You have the keyboard. What you press goes to the program." };
  fill(page, isMine ? { ...session, ...mine } : session);
  page.dataset.keyboard = isMine ? "mine" : session.operator ? "other" : "";
  find("#take").hidden = isMine || !session.may_type || !page.dataset.mayType;
  find("#release").hidden = !isMine;
  find("#replay").hidden = session.is_active;
  const isSecret = session.kind === "secret";
  find("#field").hidden = !(isMine && (isSecret || wantsLine));
  find("#field input").type = isSecret ? "password" : "text";
  find("#field span").textContent = isSecret ? "Secret (not shown, not kept)" : "Line";
  if (session.is_active && session.input_error) say(`The host refused: ${session.input_error}`);
}

function ask(dialog, text) {
  dialog.querySelector("pre").textContent = text;
  dialog.returnValue = "";
  dialog.showModal();
  return new Promise((done) => { dialog.onclose = () => done(dialog.returnValue); });
}

const typed = (text) => keyboard.type(text)
  || say("Nothing was typed: too much that was typed before has not left yet.");

async function type(text, isPasted) {
  if (!keyboard.isHeld) {
    say(session.may_type ? "You are watching. Take over to type." : "");
  } else if (!isPasted) {
    typed(text);
  } else if (!needsLook(text) || await ask(find("#paste"), lookedAt(text)) === "yes") {
    screen.paste(text.replaceAll("\x1b", ""));
    screen.focus();
  }
}

// The newest event comes first. Each leads to its moment in the replay.
async function listEvents() {
  if (isListed || socket.socket?.readyState !== WebSocket.OPEN) return;
  isListed = true;
  const [list, seq] = [find("#events"), () => list.firstElementChild?.dataset.seq ?? 0];
  const last = seq();
  const answer = await fetch(`${page.dataset.events}?after=${last}`);
  const events = await answer.text();
  // What changed meanwhile may have listed some of them.
  if (!answer.ok || answer.redirected || last !== seq()) isListed = false;
  else list.insertAdjacentHTML("afterbegin", events);
}

async function take() {
  if (find("#take").hidden) return;
  const other = session.operator !== page.dataset.actor && session.operator;
  const wish = other ? await ask(find("#insist"), `${other} has the keyboard.`) : "yes";
  if (wish === "ask") socket.send("ask");
  if (wish === "yes") socket.send("take", { insists: Boolean(other) });
}

function lost(why) {
  if (keyboard.isHeld) say(why);
  keyboard.lose();
  draw();
}

const handlers = {
  board: showCounts,
  session(message) {
    const { operator, is_active: isActive } = message;
    if (session?.is_active && !isActive) say("The session has ended. Nothing more can be typed.");
    session = message;
    isListed = false;
    if (screen.cols !== message.cols || screen.rows !== message.rows) {
      screen.resize(message.cols, message.rows);
      screen.fit?.();
    }
    // A state from just before the keyboard was taken may still come.
    if (!isActive) keyboard.lose();
    else if (operator === page.dataset.actor) keyboard.isConfirmed = keyboard.isHeld;
    else if (keyboard.isConfirmed)
      lost(operator ? `${operator} took the keyboard.` : "Handed back.");
    draw();
    if (location.hash === "#take") { location.hash = ""; take(); }
  },
  begin(message) {
    // Two streams share the screen of a program without a terminal.
    if (!place.dataset.pipes) screen.write(RESET);
    offsets[message.stream] = message.offset;
    if (message.is_alternate) screen.write("\x1b[?1049h");
    say(message.skipped ? `${message.skipped} bytes before this screen are not shown here.` : "");
  },
  output({ stream, offset, bytes }) {
    if (offset !== offsets[stream]) { offsets[stream] = null; socket.socket.close(); return; }
    const end = offset + bytes.length;
    offsets[stream] = end;
    screen.write(bytes, () => socket.send("seen", { stream, offset: end }));
  },
  gap(message) {
    say(`${message.to_offset - message.offset} bytes are gone: ${message.reason}.`);
    offsets[message.stream] = message.to_offset;
  },
  taken() {
    keyboard.isHeld = true;
    // Somebody who had it already, on a page before this one, hears of no change.
    keyboard.isConfirmed = session.operator === page.dataset.actor;
    say("");
    draw();
    (find("#field").hidden ? screen : find("#field input")).focus();
  },
  typed: ({ seq }) => keyboard.typed(seq),
  refused({ about, code, message, hint }) {
    // The rest of what was typed may follow the key that ended the program.
    if (session && !session.is_active) return;
    wantsLine ||= code === "COMMAND_NOT_ALLOWED";
    // Its host comes back later than the server: what was typed waits for both.
    if (code === "CONTROLLER_OFFLINE") setTimeout(() => keyboard.send(), 1000);
    else if (about === "input" && code !== "KEYBOARD_NOT_HELD") keyboard.forget();
    else if (about !== "resize") lost("");
    draw();
    say(`${message}. ${hint}`);
  },
};

const screen = await makeScreen(place, type);
const socket = new Socket(handlers, (opened) => {
  opened.send("watch_session",
    { session_id: page.dataset.live, offset: offsets.stdout, stderr: offsets.stderr });
  opened.send("watch_board", { counts_only: true });
  keyboard?.resume();
});
keyboard = new Keyboard(socket);

find("#take").addEventListener("click", take);
const onSubmit = (form, act) => find(form).addEventListener("submit", (event) => {
  event.preventDefault();
  act(event.target);
  event.target.reset();
});
onSubmit("#release", ({ note }) => socket.send("release", { note: note.value }));
onSubmit("#field", ({ typed: { value } }) => {
  wantsLine &&= !value;
  return value ? typed(`${value}\r`) : say("Nothing was typed: the field is empty.");
});
find("#fit")?.addEventListener("click", () =>
  socket.send("resize", { cols: screen.columns(), rows: session.rows }));
screen.attachCustomKeyEventHandler?.((event) => {
  const leaves = event.ctrlKey && event.shiftKey && event.key === "X";
  const way = keyboard.isHeld ? "#release input" : "#take";
  if (leaves && event.type === "keydown") find(way).focus();
  return keyboard.isHeld && !leaves;
});
actions.t = take;
addEventListener("resize", () => screen.fit?.());
setInterval(() => { draw(); listEvents().catch(() => { isListed = false; }); }, 1000);
