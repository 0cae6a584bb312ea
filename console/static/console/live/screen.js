// The screen of a session: the terminal emulator.
//
// The emulator answers queries of programs. No answer is typed, and no mouse is told of: what
// leaves is what the emulator itself says that a person typed.
const OPTIONS = {
  scrollback: 2000, allowProposedApi: true, fontFamily: "monospace",
  theme: { background: "#101317", foreground: "#e8ebf0" },
  linkHandler: { activate: () => undefined },
};
const [MIN_FONT, MAX_FONT, GLYPH_WIDTH] = [8, 15, 0.602];

// Without the emulator the page shows the text that came with it.
const TEXT = { write: (_, done) => done?.(), resize() {}, focus() {} };

export async function makeScreen(place, onText, more = {}) {
  if (!place.dataset.terminal) return TEXT;
  const [{ Terminal }, { Unicode11Addon }] = await Promise.all(
    [place.dataset.terminal, place.dataset.unicode].map((at) => import(at)));
  stampStyles();
  const terminal = new Terminal({ ...OPTIONS, ...more, convertEol: !!place.dataset.pipes });
  terminal.open(place);
  terminal.loadAddon(new Unicode11Addon());
  terminal.unicode.activeVersion = "11";
  terminal._core.coreService.isCursorInitialized = true; // watchers see the cursor, too
  hearPerson(terminal, place, onText);
  terminal.fit = () => {
    const size = Math.floor(place.clientWidth / (terminal.cols * GLYPH_WIDTH));
    terminal.options.fontSize = Math.min(MAX_FONT, Math.max(MIN_FONT, size));
  };
  terminal.columns = () =>
    Math.floor((place.clientWidth - 20) / (terminal.options.fontSize * GLYPH_WIDTH));
  return terminal;
}

// The emulator makes <style> elements and knows no nonce. This stamps the page's nonce on them, so
// that the policy needs no 'unsafe-inline'.
function stampStyles() {
  const { nonce } = document.querySelector("link[rel=stylesheet][nonce]");
  const make = document.createElement.bind(document);
  document.createElement = (...names) => Object.assign(make(...names), { nonce });
}

function hearPerson(terminal, place, onText) {
  const { coreService } = terminal._core;
  const pass = coreService.triggerDataEvent.bind(coreService);
  coreService.triggerDataEvent = (text, isTyped) => {
    if (isTyped && !text.startsWith("\x1b[<")) pass(text, true);
  };
  terminal.onData((text) => onText(text));
  place.addEventListener("paste", (event) => {
    event.preventDefault();
    event.stopPropagation();
    onText(event.clipboardData.getData("text/plain"), true);
  }, true);
}
