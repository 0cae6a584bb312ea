// The whole state of a terminal emulator as a value, and back: what is on its screens, where its
// cursors are, and its modes. It reaches into the emulator, whose version the lock fixes: the
// emulator's own way to write a screen as text loses margins, character sets and wrapped lines.
const KEPT_LINES = 100; // above the screen
const BLANK = 0x400000; // the content of an empty cell
const OF_BUFFER = ["x", "y", "savedX", "savedCharset", "scrollTop", "scrollBottom", "tabs"];

const styleOf = ({ fg, bg, extended }) => [fg, bg, extended._ext];

function restyle(attributes, [fg, bg, extended]) {
  attributes.extended = attributes.extended.clone();
  Object.assign(attributes.extended, { _ext: extended, _urlId: 0 });
  return Object.assign(attributes, { fg, bg });
}

function lineOf({ _data: data, length, isWrapped, _combined, _extendedAttrs }) {
  let end = length * 3;
  while (end && data[end - 3] === BLANK && !data[end - 2] && !data[end - 1]) end -= 3;
  const extended = Object.entries(_extendedAttrs).map(([column, { _ext }]) => [column, _ext]);
  return [isWrapped, [...data.subarray(0, end)], _combined, extended];
}

function fill(line, [isWrapped, cells, combined, extended], style) {
  for (let at = 0; at < line.length * 3; at += 1) line._data[at] = at % 3 ? 0 : BLANK;
  line._data.set(cells);
  Object.assign(line, { isWrapped, _combined: combined, _extendedAttrs: {} });
  for (const [column, value] of extended) {
    line._extendedAttrs[column] = restyle(style.clone(), [0, 0, value]).extended;
  }
}

function bufferOf(buffer) {
  const dropped = Math.max(0, buffer.ybase - KEPT_LINES);
  const lines = [];
  for (let y = dropped; y < buffer.lines.length; y += 1) lines.push(lineOf(buffer.lines.get(y)));
  const kept = Object.fromEntries(OF_BUFFER.map((name) => [name, buffer[name]]));
  const [ybase, savedY] = [buffer.ybase, buffer.savedY].map((y) => Math.max(0, y - dropped));
  return { ...kept, lines, ybase, savedY, saved: styleOf(buffer.savedCurAttrData) };
}

function refill(buffer, { lines, saved, ...kept }, style) {
  const savedCurAttrData = restyle(style.clone(), saved);
  Object.assign(buffer, kept, { ydisp: kept.ybase, savedCurAttrData });
  while (buffer.lines.length < lines.length) buffer.lines.push(buffer.getBlankLine(style.clone()));
  lines.forEach((line, y) => fill(buffer.lines.get(y), line, style));
}

// What begins a terminal anew. Its own reset() leaves an escape sequence, half a character and a
// hidden cursor as they are, and does not wait for what was written before.
export const RESET = "\x18\x1bc\x1b[?25h";

export const written = (terminal, data) => new Promise((done) => { terminal.write(data, done); });

// Has the terminal read pieces of a recording: output, or a size that it takes after the output
// before. `bytesOf` decodes base64.
export async function feed(terminal, pieces, bytesOf) {
  let last = written(terminal, "");
  for (const [, first, cols] of pieces) {
    if (cols === undefined) {
      last = written(terminal, bytesOf(first));
    } else {
      await last;
      terminal.resize(cols, first);
      terminal.fit?.();
    }
  }
  await last;
}

// False inside of an escape sequence or of a character: there is no state to keep then.
export const isAtRest = ({ _core: { _inputHandler: { _parser, _utf8Decoder } } }) =>
  _parser.currentState === 0 && _utf8Decoder.interim[0] === 0;

export function stateOf({ rows, cols, _core: core }) {
  const { coreService, coreMouseService: mouse, _charsetService, _inputHandler, buffers } = core;
  return {
    rows, cols, normal: bufferOf(buffers.normal), alternate: bufferOf(buffers.alt),
    isAlternate: buffers.active === buffers.alt,
    modes: coreService.modes, privateModes: coreService.decPrivateModes,
    isHidden: coreService.isCursorHidden, glevel: _charsetService.glevel,
    charsets: [..._charsetService._charsets], charset: _charsetService.charset ?? null,
    mouse: [mouse.activeProtocol, mouse.activeEncoding],
    style: styleOf(_inputHandler._curAttrData), join: _inputHandler._parser.precedingJoinState,
  };
}

// The terminal is new, or what was written last is RESET.
export function restore(terminal, state) {
  const { _core: core } = terminal;
  const { coreService, coreMouseService: mouse, _charsetService, _inputHandler, buffers } = core;
  terminal.resize(state.cols, state.rows);
  const style = _inputHandler._curAttrData.clone();
  if (state.isAlternate) buffers.activateAltBuffer();
  refill(buffers.normal, state.normal, style);
  refill(buffers.alt, state.alternate, style);
  Object.assign(coreService.modes, state.modes);
  Object.assign(coreService.decPrivateModes, state.privateModes);
  coreService.isCursorHidden = state.isHidden;
  state.charsets.forEach((charset, at) => _charsetService.setgCharset(at, charset ?? undefined));
  _charsetService.setgLevel(state.glevel);
  if (state.charset !== undefined) _charsetService.charset = state.charset ?? undefined;
  [mouse.activeProtocol, mouse.activeEncoding] = state.mouse;
  restyle(_inputHandler._curAttrData, state.style);
  _inputHandler._parser.precedingJoinState = state.join;
  terminal.scrollToBottom();
  terminal.refresh?.(0, state.rows - 1);
}
