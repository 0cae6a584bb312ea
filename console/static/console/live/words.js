// What the pages say in words: what a session waits for, how long ago, and how long yet.
export const WAITS = {
  secret: "a secret", approval: "an approval", line: "a line", key: "a key",
  screen: "a key on its screen", shell: "a shell command",
};
const STEPS = [[86400, "d"], [3600, "h"], [60, "m"], [1, "s"]];

export function span(seconds) {
  const [size, unit] = STEPS.find(([step]) => seconds >= step) ?? STEPS.at(-1);
  return `${Math.max(0, Math.floor(seconds / size))} ${unit}`;
}

export const ago = (moment) => (moment ? span((Date.now() - new Date(moment)) / 1000) : "");

export function left(moment, isPaused) {
  if (isPaused) return "its lifetime is paused";
  return moment ? `${span((new Date(moment) - Date.now()) / 1000)} left` : "";
}

// "5m" as seconds; 0 for anything else.
export function seconds(text) {
  const found = /^(\d+)([smhd])$/.exec(text ?? "");
  return found ? found[1] * STEPS.find(([, unit]) => unit === found[2])[0] : 0;
}
