// What waits for a person: in the header and in the title of every page.
import { notice } from "./notices.js";
import { Socket } from "./socket.js";

const title = document.title;

export function showCounts({ counts: { person } }) {
  const place = document.querySelector("#waiting");
  const text = person ? `${person} ${person === 1 ? "needs" : "need"} a person` : "";
  if (place.textContent !== text) place.textContent = text;
  notice(person, text);
  document.title = person ? `(${person}) ${title}` : title;
}

// Pages with a connection of their own show the counts themselves.
if (document.querySelector("#waiting") && !document.querySelector("[data-live]"))
  new Socket({ board: showCounts }, (socket) => socket.send("watch_board", { counts_only: true }));
