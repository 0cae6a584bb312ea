// What waits for a person: in the header and in the title of every page.
import { notice } from "./notices.js";
import { Socket } from "./socket.js";
import { tell } from "./words.js";

const title = document.title;
const place = document.querySelector("#waiting");

export function showCounts({ counts: { person, elsewhere = 0 } }) {
  const all = person + elsewhere;
  const text = all ? `${all} ${all === 1 ? "needs" : "need"} a person` : "";
  tell(place, text);
  notice(all, text, place.dataset.sound);
  document.title = all ? `(${all}) ${title}` : title;
}

// Pages with a connection of their own show the counts themselves.
if (place && !document.querySelector("[data-live]"))
  new Socket({ board: showCounts }, (socket) => socket.send("watch_board", { counts_only: true }));
