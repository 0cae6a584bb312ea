// What is typed leaves in its order and once: one input at a time is under way, with a number.
// After a lost connection the same input goes again under the same number.
const [MOST, QUEUED] = [8000, 200000]; // characters of an input, and of all that wait

const id = "00000000-0000-4000-8000-000000000000".replaceAll("0", () =>
  (crypto.getRandomValues(new Uint8Array(1))[0] % 16).toString(16));

export class Keyboard {
  constructor(socket) {
    Object.assign(this, { socket, seq: 0 });
    this.lose();
  }

  // False if there is no room: half of a text is worse than nothing of it.
  type(text) {
    if (!this.isHeld) return true;
    if (this.queued.length + text.length > QUEUED) return false;
    this.queued += text;
    if (!this.typing) this.next();
    return true;
  }

  next() {
    // No half of a character that takes two: the server refuses it.
    const end = /[\ud800-\udbff]/.test(this.queued[MOST - 1]) ? MOST - 1 : MOST;
    [this.typing, this.queued] = [this.queued.slice(0, end), this.queued.slice(end)];
    if (this.typing) this.seq += 1;
    this.send();
  }

  send() {
    const { seq, typing: text } = this;
    if (text) this.socket.send("input", { keyboard: id, seq, text });
  }

  // The connection is back: whether the last input was typed is not known here, but to the server.
  resume() {
    if (this.isHeld) this.socket.send("take", { has: true });
    this.send();
  }

  typed(seq) {
    if (seq === this.seq) this.next();
  }

  forget() {
    Object.assign(this, { typing: "", queued: "" });
  }

  lose() {
    Object.assign(this, { isHeld: false, isConfirmed: false });
    this.forget();
  }
}
