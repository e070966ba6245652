// What a reader would see of the report, told to the page that frames it.
(() => {
  const shown = (selector) => [...document.querySelectorAll(selector)].filter((e) => e.getClientRects().length > 0);
  const channels = (colour) => colour.match(/[\d.]+/g).slice(0, 3).map((c) => Number(c) / 255);
  const light = (colour) => {
    const linear = channels(colour).map((c) => (c <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4));
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2];
  };
  const body = getComputedStyle(document.body);
  const [ink, page] = [light(body.color), light(body.backgroundColor)];
  const texts = shown("figure svg text");
  const marks = shown("figure svg *").filter((e) => e.tagName !== "g");
  // Black is what a colour becomes that the style sheet doesn't know.
  const unpainted = marks.filter((e) => {
    const style = getComputedStyle(e);
    return [style.fill, style.stroke].includes("rgb(0, 0, 0)") && !(style.fill === "none" && style.stroke === "none");
  });
  const sizes = texts.map((e) => e.getBoundingClientRect().height / 1.2);
  // A phone shows tables as cards, so that nobody has to scroll sideways.
  const sideways = shown(".scroll").filter((e) => e.querySelector("table") && e.scrollWidth > e.clientWidth);
  const found = {
    sideways: sideways.length,
    width: window.innerWidth,
    scroll: document.documentElement.scrollWidth,
    wide: shown("figure .wide").length,
    narrow: shown("figure .narrow").length,
    unpainted: unpainted.length,
    dark: page < ink,
    contrast: (Math.max(ink, page) + 0.05) / (Math.min(ink, page) + 0.05),
    least: Math.min(...sizes),
  };
  parent.postMessage(JSON.stringify(found), "*");
})();
