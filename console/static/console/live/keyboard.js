// What is typed leaves in its order and once: one input at a time is under way, with a number. After
// a lost connection the same input goes again under the same number.
const MOST = 8000;
const QUEUED = 200000;

const id = [...crypto.getRandomValues(new Uint8Array(16))]
  .map((byte, at) => byte.toString(16).padStart(2, "0") + ([3, 5, 7, 9].includes(at) ? "-" : ""));

export class Keyboard {
  constructor(socket) {
    Object.assign(this, { socket, seq: 0 });
    this.lose();
  }

  type(text) {
    if (!this.isHeld || this.queued.length + text.length > QUEUED) return;
    this.queued += text;
    if (!this.typing) this.next();
  }

  next() {
    // No half of a character that takes two: the server refuses it.
    const end = /[\ud800-\udbff]/.test(this.queued[MOST - 1]) ? MOST - 1 : MOST;
    [this.typing, this.queued] = [this.queued.slice(0, end), this.queued.slice(end)];
    if (!this.typing) return;
    this.seq += 1;
    this.send();
  }

  send() {
    this.socket.send("input", { keyboard: id.join(""), seq: this.seq, text: this.typing });
  }

  // The connection is back: whether the last input was typed is not known here, but to the server.
  resume() {
    if (this.isHeld) this.socket.send("take", { has: true });
    this.again();
  }

  again() {
    if (this.typing) this.send();
  }

  typed(seq) {
    if (seq === this.seq) this.next();
  }

  lose() {
    Object.assign(this, { isHeld: false, isConfirmed: false, typing: "", queued: "" });
  }
}
