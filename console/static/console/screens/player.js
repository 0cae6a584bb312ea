// Shows a recording at any moment: from the screen kept before it, or from output before it.
import { RESET, feed, restore, written } from "./state.mjs";

const PIECES_AHEAD = 64; // that wait to be shown; with fewer, the next part is fetched
const IDLE_SECONDS = 1.5;
const REACH_BYTES = 2 * 1024 * 1024; // fed for an exact jump; for a longer way, one makes a guess
const BEGIN = { time: -1, stdout: 0, stderr: 0 };
const placeOf = ({ stdout, stderr }) => stdout + stderr;

// The value at an address of the server. A login that has ended leads to the login page.
export async function fetched(url, signal) {
  const answer = await fetch(url, { signal });
  if (answer.redirected) throw new Error("your login has ended; load the page again");
  if (!answer.ok) throw new Error(`the server answered ${answer.status}`);
  return answer.json();
}

export class Player {
  constructor(index, term, urls) {
    Object.assign(this, { index, term, urls, now: 0, isPlaying: false, screens: [] });
    this.control = new AbortController(); // of what the newest jump fetches
    this.line = Promise.resolve(); // one jump or step at a time feeds the terminal
  }

  // Learns of new screens. True while there will be more.
  async learn() {
    const after = placeOf(this.screens.at(-1) ?? BEGIN);
    const found = await fetched(`${this.urls.screens}?after=${after}`).catch(() => null);
    this.screens.push(...found?.places ?? []);
    return found?.is_growing;
  }

  // Where to begin for a moment. What is neither a screen nor the beginning is a guess.
  placeBefore(time) {
    const { places, lead_bytes: lead } = this.index;
    const at = placeOf(places.findLast((place) => place.time <= time) ?? BEGIN);
    const screen = this.screens.findLast((place) => place.time <= time) ?? BEGIN;
    const guess = places.findLast((place) => placeOf(place) <= at - lead);
    return !guess || at - placeOf(screen) <= REACH_BYTES ? screen : { ...guess, isGuess: true };
  }

  sizeAt(time) {
    const sizes = this.index.markers.filter((marker) => marker.kind === "resize");
    return sizes.findLast((marker) => marker.time <= time) ?? this.index;
  }

  async begin(place) {
    const isKept = place !== BEGIN && !place.isGuess;
    const kept = `${this.urls.screen}?place=${placeOf(place)}`;
    const answer = isKept && fetched(kept, this.control.signal);
    Object.assign(this, { queue: [], next: place, fetching: null, isGuess: place.isGuess });
    const [state] = await Promise.all([answer, this.more()]);
    await written(this.term, RESET);
    const { rows, cols } = isKept ? state : this.sizeAt(place.time);
    this.term.resize(cols, rows);
    if (isKept) restore(this.term, state);
    this.term.fit();
  }

  async more() {
    if (this.next === null) return;
    const mine = this.fetching ??= this.fetchPart();
    await mine.finally(() => { if (this.fetching === mine) this.fetching = null; });
  }

  async fetchPart() {
    const { queue, next: { stdout, stderr } } = this; // a jump begins another queue
    const place = `?stdout=${stdout}&stderr=${stderr}`;
    const part = await fetched(this.urls.part + place, this.control.signal);
    queue.push(...part.pieces);
    if (queue === this.queue) this.next = part.stdout === null ? null : part;
  }

  // Shows all output up to now. True if none of it is left to fetch.
  async show() {
    const later = this.queue.findIndex(([time]) => time > this.now);
    const due = this.queue.splice(0, later < 0 ? this.queue.length : later);
    await feed(this.term, due, (text) => Uint8Array.fromBase64(text));
    return this.queue.length > 0 || this.next === null;
  }

  alone(work) {
    const { control } = this;
    this.line = this.line.catch(() => {}).then(() => !control.signal.aborted && work());
    return this.line.catch((error) => { if (!control.signal.aborted) throw error; });
  }

  seek(time) {
    this.control.abort();
    this.control = new AbortController();
    this.now = Math.min(Math.max(time, 0), this.index.seconds);
    return this.alone(async () => {
      await this.begin(this.placeBefore(this.now));
      while (!await this.show()) await this.more();
    });
  }

  step(seconds, skipsIdle) {
    return this.alone(async () => {
      this.now += seconds;
      const upcoming = this.queue[0]?.[0] ?? (this.next === null ? this.index.seconds : this.now);
      if (skipsIdle && upcoming - this.now > IDLE_SECONDS) this.now = upcoming - 0.3;
      if (!await this.show()) await this.more();
      else if (this.queue.length < PIECES_AHEAD) this.more().catch(() => {});
    });
  }
}
