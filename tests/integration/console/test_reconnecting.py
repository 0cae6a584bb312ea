"""A page's connection comes back: soon, later and later, and not where that is of no use.

The script of the pages runs in Node, in a browser of which only the socket and the clock are here.
"""

import json
import subprocess
from typing import Any

from console.parts.emulator import emulator_command
from tests.support.stack import PROJECT_ROOT

SCRIPT = """
const sockets = [], waits = [], shown = [], begun = [], heard = [], listeners = {};
const span = { textContent: "", hidden: true };
const place = { hidden: true, querySelector: () => span };
class WebSocket {
  static CONNECTING = 0; static OPEN = 1; static CLOSING = 2; static CLOSED = 3;
  constructor(address) { Object.assign(this, { address, readyState: 0, sent: [] });
    sockets.push(this); }
  send(text) { this.sent.push(JSON.parse(text)); }
  close() { this.closes = (this.closes ?? 0) + 1; this.drop(); }
  open() { this.readyState = 1; this.onopen(); }
  drop() { this.readyState = 3; this.onclose(); shown.push(place.hidden ? "" : span.textContent); }
  tell(message) { this.onmessage({ data: JSON.stringify(message) }); }
}
let random = 1;
Math.random = () => random;
Object.assign(globalThis, { WebSocket, location: { protocol: "https:", host: "h.example.com" },
  window: { addEventListener: (name, hear) => { listeners[name] = hear; } },
  document: { querySelector: (name) => name === "#connection" ? place : null },
  setTimeout: (call, wait) => waits.push([call, wait]) });
const { Socket } = await import(`${process.argv[1]}/socket.js`);
const page = new Socket({ board: (message) => heard.push(message),
  output: ({ stream, offset, bytes }) => heard.push([stream, offset, [...bytes]]) },
  () => begun.push(sockets.length));
const last = () => sockets.at(-1);
// The connection goes, and the page tries it again; returns how long it waited.
const again = () => { last().drop(); const [call, wait] = waits.at(-1); call(); return wait; };
const result = {};
const steps = { STEPS };
console.log(JSON.stringify({ result: steps.STEPS(), sockets: sockets.length, waits: waits.length,
  shown, begun, heard, place: place.hidden ? "" : span.textContent,
  address: sockets[0].address, sent: sockets.flatMap((socket) => socket.sent) }));
"""


def _told(steps: str) -> dict[str, Any]:
    """What a page did in ``steps``, the body of a function that returns its result."""
    node = (emulator_command() or ("node", "", ""))[-3]
    script = SCRIPT.replace("STEPS }", f"STEPS: () => {{ {steps} }} }}")
    live = PROJECT_ROOT / "console/static/console/live"
    command = [node, "--input-type=module", "-e", script, str(live)]
    answer = subprocess.run(command, capture_output=True, text=True, check=True)
    told: dict[str, Any] = json.loads(answer.stdout)
    return told


def test_the_waits_double_up_to_four_seconds_however_often_it_is_tried() -> None:
    told = _told(
        """const full = Array.from({ length: 2000 }, again); random = 0;
        return [full.slice(0, 7), new Set(full.slice(5)).size, again()];"""
    )
    assert told["result"] == [[200, 400, 800, 1600, 3200, 4000, 4000], 1, 2000]
    assert (told["sockets"], told["waits"]) == (2002, 2001)
    assert told["begun"] == []
    assert set(told["shown"]) == {"Not connected. Trying again…"}
    assert told["address"] == "wss://h.example.com/ws/console/"


def test_a_message_of_a_server_makes_the_waits_short_again() -> None:
    told = _told(
        """const found = [again(), again()];
        last().open(); found.push(again());
        last().open(); last().tell({ type: "closed", is_final: false, message: "busy" });
        found.push(again());
        last().open(); last().tell({ type: "later", of: "a newer server" }); found.push(again());
        last().open(); last().tell({ type: "board", version: 7 }); found.push(again());
        return found;"""
    )
    assert told["result"] == [200, 400, 800, 1600, 200, 200]
    assert told["begun"] == [3, 4, 5, 6]
    assert told["heard"] == [{"type": "board", "version": 7}]
    assert told["sent"] == [{"type": "board_seen", "version": 7}]


def test_an_end_for_good_is_told_and_not_tried_again() -> None:
    told = _told(
        """last().open(); last().tell({ type: "closed", is_final: true, message: "logged out" });
        last().drop(); listeners.online(); listeners.online(); page.send("keys", {});
        return last().closes ?? 0;"""
    )
    assert (told["sockets"], told["waits"], told["result"]) == (1, 0, 0)
    assert told["place"] == "The live view has ended: logged out."
    assert told["sent"] == []


def test_a_network_that_is_back_replaces_a_connection_and_no_wait() -> None:
    told = _told(
        """last().open(); listeners.online(); const waiting = waits.length;
        listeners.online(); const still = waits.length; waits.at(-1)[0]();
        page.send("early"); last().open(); page.send("watch", { session: "s" });
        last().tell({ type: "other" });
        return [waiting, still, sockets[0].closes];"""
    )
    assert told["result"] == [1, 1, 1]
    assert told["sockets"] == 2
    assert told["sent"] == [{"type": "watch", "session": "s"}]
    assert told["place"] == ""


def test_output_has_its_stream_its_offset_and_its_bytes() -> None:
    told = _told(
        """const frame = (stream, offset, bytes) => { const all = new Uint8Array(9 + bytes.length);
          const view = new DataView(all.buffer); view.setUint8(0, stream);
          view.setBigUint64(1, BigInt(offset)); all.set(bytes, 9); return all.buffer; };
        for (const [stream, offset, bytes] of [[0, 0, []], [1, 2 ** 53 - 1, [255, 0, 10]]])
          last().onmessage({ data: frame(stream, offset, bytes) });"""
    )
    assert told["heard"] == [["stdout", 0, []], ["stderr", 2**53 - 1, [255, 0, 10]]]
