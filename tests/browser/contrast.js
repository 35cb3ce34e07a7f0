// Run in a page by the tests: every visible text whose contrast with what is behind it is below
// WCAG 2 AA (4.5, or 3 for large text), as [{text, ratio}]. A text's background is the nearest
// opaque colour of its ancestors; in a drawing it is the topmost filled shape under its middle.
(() => {
  const canvas = document.createElement("canvas");
  canvas.width = canvas.height = 1;
  const context = canvas.getContext("2d", { willReadFrequently: true });

  /** Any CSS colour, as the screen shows it over another one: [r, g, b]. Mixed once a pair. */
  const mixtures = new Map();
  function over(colour, ground) {
    const pair = `${colour} ${ground}`;
    if (!mixtures.has(pair)) mixtures.set(pair, mixed(colour, ground));
    return mixtures.get(pair);
  }

  function mixed(colour, [r, g, b]) {
    context.fillStyle = `rgb(${r}, ${g}, ${b})`;
    context.fillRect(0, 0, 1, 1);
    context.fillStyle = colour;
    context.fillRect(0, 0, 1, 1);
    return [...context.getImageData(0, 0, 1, 1).data].slice(0, 3);
  }

  function luminance(colour) {
    const [r, g, b] = colour.map((byte) => {
      const c = byte / 255;
      return c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4;
    });
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  }

  function contrast(a, b) {
    const [low, high] = [luminance(a), luminance(b)].sort((x, y) => x - y);
    return (high + 0.05) / (low + 0.05);
  }

  const white = [255, 255, 255];
  const grounds = new Map([[null, white]]);
  function behind(element) {
    if (!grounds.has(element)) {
      const colour = getComputedStyle(element).backgroundColor;
      grounds.set(element, over(colour, behind(element.parentElement)));
    }
    return grounds.get(element);
  }

  const opacities = new Map([[null, 1]]);
  function opacityOf(element) {
    if (!opacities.has(element)) {
      const own = Number(getComputedStyle(element).opacity);
      opacities.set(element, own * opacityOf(element.parentElement));
    }
    return opacities.get(element);
  }

  /** Shapes of the same drawing that cover the middle of a text and are drawn before it. */
  function behindInDrawing(text) {
    const drawing = text.ownerSVGElement;
    const box = text.getBoundingClientRect();
    const [x, y] = [box.x + box.width / 2, box.y + box.height / 2];
    let colour = behind(drawing.parentElement);
    for (const shape of drawing.querySelectorAll("rect, path, circle")) {
      if (text.compareDocumentPosition(shape) & Node.DOCUMENT_POSITION_FOLLOWING) break;
      const style = getComputedStyle(shape);
      const area = shape.getBoundingClientRect();
      const covers = area.left <= x && x <= area.right && area.top <= y && y <= area.bottom;
      if (covers && shape.tagName !== "path") colour = over(style.fill, colour);
    }
    return colour;
  }

  const found = [];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    const element = node.parentElement;
    if (!node.data.trim() || element.closest("script, style, noscript, title, :disabled")) continue;
    if (!element.checkVisibility({ visibilityProperty: true })) continue;
    const style = getComputedStyle(element);
    const drawing = element.ownerSVGElement;
    const ground = drawing ? behindInDrawing(element) : behind(element);
    const opacity = opacityOf(element);
    const ink = over(drawing ? style.fill : style.color, ground);
    const shown = ink.map((c, n) => opacity * c + (1 - opacity) * ground[n]);
    const size = parseFloat(style.fontSize);
    const large = size >= 24 || (size >= 18.66 && Number(style.fontWeight) >= 700);
    const ratio = contrast(shown, ground);
    if (ratio < (large ? 3 : 4.5)) {
      found.push({ text: node.data.trim().slice(0, 60), ratio: Math.round(100 * ratio) / 100 });
    }
  }
  return found;
})()
