"use strict";
// Shows a run live: asks for changes every second until the run is over, but not while somebody types a reason.
(() => {
  const place = document.getElementById("holdline-run");
  const shown = () => place.querySelector(".holdline-run").dataset;
  const isOver = () => shown().over === "yes";
  const isTyping = () => Array.from(place.querySelectorAll("input[type=text]")).some((field) => field === document.activeElement || field.value);
  const look = async () => {
    if (!isTyping()) {
      try {
        const answer = await fetch(`${place.dataset.live}?have=${shown().version}`, { credentials: "same-origin" });
        if (answer.status === 200 && !answer.redirected && !isTyping()) {
          const old = place.querySelector(".holdline-lines");
          const atEnd = !old || old.scrollTop + old.clientHeight >= old.scrollHeight - 40;
          place.innerHTML = await answer.text();
          const lines = place.querySelector(".holdline-lines");
          if (lines) { lines.scrollTop = atEnd ? lines.scrollHeight : old.scrollTop; }
        }
      } catch { /* the server is away: the next look tries again */ }
    }
    if (!isOver()) { window.setTimeout(look, 1000); }
  };
  if (!isOver()) { window.setTimeout(look, 1000); }
})();
