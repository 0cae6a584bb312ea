// What a page gave to paste may be other than what it showed: a control character can be Enter.
const SHOWN = 5000;
const HIDDEN = /(?![\n\t])[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu;
const name = (char) => `[U+${char.codePointAt(0).toString(16).toUpperCase().padStart(4, "0")}]`;

// True if a person has to look at a text before it is typed.
export const needsLook = (text) => /[^\P{Cc}\t]/u.test(text);

// The text to look at: what cannot be seen is spelled out, and what is left out is counted.
export function lookedAt(text) {
  const more = text.length - SHOWN;
  const shown = text.slice(0, SHOWN).replaceAll("\r\n", "\n").replace(HIDDEN, name);
  return more > 0 ? `${shown}\n[… and ${more} more characters that are not shown]` : shown;
}
