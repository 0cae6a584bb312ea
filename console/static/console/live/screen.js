// The screen of a session: the terminal emulator, or plain text where it is not installed.
//
// The emulator never types: `disableStdin` drops the answers that it gives to a program's queries.
// What a person types leaves by `onKey`, paste and composition, and by nothing else.
const OPTIONS = {
  disableStdin: true, scrollback: 5000, allowProposedApi: true, fontFamily: "monospace",
  theme: { background: "#101317", foreground: "#e8ebf0" },
  linkHandler: { activate: () => undefined },
};
const [MIN_FONT, MAX_FONT, GLYPH_WIDTH] = [8, 15, 0.602];

class TextScreen {
  constructor(place) {
    this.text = new TextDecoder();
    this.pre = place.appendChild(document.createElement("pre"));
  }
  write(bytes, done) {
    const text = this.text.decode(bytes, { stream: true })
      // eslint-disable-next-line no-control-regex
      .replace(/\x1b(\[[0-?]*[ -/]*[@-~]|[\]PX^_][^\x07\x1b]*(\x07|\x1b\\)?|.)|[^\P{Cc}\n\t]/gu, "");
    this.pre.textContent = (this.pre.textContent + text).slice(-65536);
    this.pre.scrollTop = this.pre.scrollHeight;
    done();
  }
  reset() { this.pre.textContent = ""; }
  resize() {}
  focus() {}
}

export async function makeScreen(place, onText, more = {}) {
  if (!place.dataset.terminal) return new TextScreen(place);
  const [{ Terminal }, { Unicode11Addon }, { stampStyles }] = await Promise.all(
    [place.dataset.terminal, place.dataset.unicode, place.dataset.styles].map((at) => import(at)));
  stampStyles();
  const terminal = new Terminal({ ...OPTIONS, ...more, convertEol: !!place.dataset.pipes });
  terminal.open(place);
  terminal.loadAddon(new Unicode11Addon());
  terminal.unicode.activeVersion = "11";
  hearKeys(terminal, place, onText);
  terminal.fit = () => {
    const size = Math.floor(place.clientWidth / (terminal.cols * GLYPH_WIDTH));
    terminal.options.fontSize = Math.min(MAX_FONT, Math.max(MIN_FONT, size));
  };
  terminal.columns = () =>
    Math.floor((place.clientWidth - 20) / (terminal.options.fontSize * GLYPH_WIDTH));
  return terminal;
}

function hearKeys(terminal, place, onText) {
  const { textarea } = terminal;
  let isHandled = false;
  textarea.addEventListener("keydown", () => { isHandled = false; }, true);
  terminal.onKey(({ key }) => { isHandled = true; onText(key); });
  // Keyboards of phones and of scripts with many letters do not send keys.
  textarea.addEventListener("input", (event) => {
    if (!event.isComposing && !isHandled && event.inputType === "insertText") onText(event.data);
    textarea.value = "";
  });
  textarea.addEventListener("compositionend", ({ data }) => data && onText(data));
  place.addEventListener("paste", (event) => {
    event.preventDefault();
    event.stopPropagation();
    onText(event.clipboardData.getData("text/plain"), true);
  }, true);
}
