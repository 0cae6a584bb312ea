// The terminal emulator makes <style> elements and knows no nonce. This stamps the page's nonce on
// each element that a script makes, so that the policy needs no 'unsafe-inline'.
export function stampStyles() {
  const { nonce } = document.querySelector("link[rel=stylesheet][nonce]");
  const make = document.createElement.bind(document);
  document.createElement = (name, options) => {
    const element = make(name, options);
    if (element instanceof HTMLStyleElement) element.nonce = nonce;
    return element;
  };
}
