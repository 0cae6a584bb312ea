// The pages' words for times, and the places on a page that the server's words go to.
const STEPS = [[86400, "d"], [3600, "h"], [60, "m"], [1, "s"]];

function span(milliseconds) {
  const seconds = milliseconds / 1000;
  const [size, unit] = STEPS.find(([step]) => seconds >= step) ?? STEPS.at(-1);
  return `${Math.max(0, Math.floor(seconds / size))} ${unit}`;
}

function left({ ends_at: end, is_paused: isPaused }) {
  if (isPaused) return "its lifetime is paused";
  return end && `${span(new Date(end) - Date.now())} left`;
}

// Puts a text in its place, which is hidden while there is none.
export function tell(place, text) {
  if (place.textContent !== text) place.textContent = text;
  place.hidden = !text;
}

// Each element with data-text gets the value of that name.
export function fill(root, values) {
  const since = values.since && `for ${span(Date.now() - new Date(values.since))}`;
  const texts = { ...values, since, left: left(values) };
  for (const place of root.querySelectorAll("[data-text]")) {
    const text = texts[place.dataset.text];
    if (place.textContent !== text) place.textContent = text;
  }
}
