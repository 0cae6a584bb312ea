// Run by Node beside the server, never by a page: reads parts of a recording, a line of JSON each,
// and answers each with the state of the terminal after it, or null where none can be kept. The
// first line says how the terminal begins.
import { createInterface } from "node:readline";
import { Unicode11Addon } from "../vendor/addon-unicode11.mjs";
import { Terminal } from "../vendor/xterm-headless.mjs";
import { feed, isAtRest, restore, stateOf } from "./state.mjs";

const input = createInterface({ input: process.stdin, crlfDelay: Infinity });
const lines = input[Symbol.asyncIterator]();
const { rows, cols, convertEol, state } = JSON.parse((await lines.next()).value);
const terminal = new Terminal({ rows, cols, convertEol, scrollback: 5000, allowProposedApi: true });
terminal.loadAddon(new Unicode11Addon());
terminal.unicode.activeVersion = "11";
if (state) restore(terminal, state);

for await (const line of lines) {
  const { pieces } = JSON.parse(line);
  await feed(terminal, pieces, (text) => Buffer.from(text, "base64"));
  process.stdout.write(`${JSON.stringify(isAtRest(terminal) ? stateOf(terminal) : null)}\n`);
}
