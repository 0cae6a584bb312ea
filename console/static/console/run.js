// Shows a run as it goes on, until it is over; not while somebody is in one of its forms.
const place = document.querySelector("#run");
const live = () => place.querySelector("#live").dataset;
const isInForm = () =>
  place.querySelector("form:focus-within, input[name=reason]:not(:placeholder-shown)");

async function look() {
  const answer = isInForm() || await fetch(`${place.dataset.part}?have=${live().version}`);
  if (answer.status === 200 && !answer.redirected && !isInForm()) {
    const old = place.querySelector("#lines");
    const isAtEnd = !old || old.scrollTop + old.clientHeight >= old.scrollHeight - 40;
    place.innerHTML = await answer.text();
    const lines = place.querySelector("#lines");
    if (lines) lines.scrollTop = isAtEnd ? lines.scrollHeight : old.scrollTop;
  }
}

while (!live().over) {
  await new Promise((done) => { setTimeout(done, 1000); });
  await look().catch(() => undefined); // the server is away: the next look tries again
}
