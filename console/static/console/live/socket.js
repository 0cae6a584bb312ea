// The connection of a page. It comes back by itself, until the server says that this is of no use.
import { tell } from "./words.js";

const [SHORTEST_MS, LONGEST_MS] = [200, 4000]; // before it is tried again

// Output comes as bytes: its stream in one, its offset in eight, and what the terminal is given.
const outputOf = (frame) => ({ type: "output", bytes: new Uint8Array(frame, 9),
  stream: new DataView(frame).getUint8(0) ? "stderr" : "stdout",
  offset: Number(new DataView(frame).getBigUint64(1)) });

export class Socket {
  // `handlers` are called by the type of a message; `begin` is called each time the socket opens.
  constructor(handlers, begin) {
    Object.assign(this, { handlers, begin, tries: 0, end: "" });
    window.addEventListener("online", () => this.socket.readyState === WebSocket.CLOSED
      || this.socket.close());
    this.connect();
  }

  connect() {
    const address = `${location.protocol.replace("http", "ws")}//${location.host}/ws/console/`;
    this.socket = new WebSocket(address);
    this.socket.binaryType = "arraybuffer";
    this.socket.onopen = () => this.begin(this);
    this.socket.onmessage = ({ data }) => this.hear(data instanceof ArrayBuffer
      ? outputOf(data) : JSON.parse(data));
    this.socket.onclose = () => this.again();
  }

  hear(message) {
    this.say("");
    if (message.type === "closed") this.end = message.is_final ? message.message : "";
    else this.tries = 0;
    this.handlers[message.type]?.(message);
    if (message.type === "board") this.send("board_seen", { version: message.version });
  }

  again() {
    this.say(this.end ? `The live view has ended: ${this.end}.` : "Not connected. Trying again…");
    if (this.end) return;
    const wait = Math.min(LONGEST_MS, SHORTEST_MS * 2 ** this.tries++);
    setTimeout(() => this.connect(), wait * (0.5 + Math.random() / 2));
  }

  send(type, fields = {}) {
    if (this.socket.readyState === WebSocket.OPEN)
      this.socket.send(JSON.stringify({ type, ...fields }));
  }

  say(text) {
    const place = document.querySelector("#connection");
    if (place) { tell(place.querySelector("span"), text); place.hidden = !text; }
  }
}
