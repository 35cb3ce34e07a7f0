// Draws the ring: a seat for each rank, the queries that live there, and the block that visits.

const SVG = "http://www.w3.org/2000/svg";
const HUES = [250, 65, 150, 330, 200, 25, 105, 290];

/** An SVG element with attributes and children; a string child becomes text. */
function svg(name, attributes = {}, ...children) {
  const element = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  element.append(...children);
  return element;
}

/** The colour of a block; `kind` is chip, done or now, whose lightness the style sheet sets. */
function colour(block, kind) {
  const hue = HUES[block] ?? Math.round(block * 137.5) % 360;
  return `oklch(var(--${kind}-l) var(--${kind}-c) ${hue})`;
}

const CENTRE = 220;
const SEAT_RADIUS = 160;
const arrowRadius = (ranks) => (ranks > 6 ? 94 : 102);

const angleOf = (rank, ranks) => (2 * Math.PI * rank) / ranks - Math.PI / 2;
function pointAt(angle, radius) {
  return {x: CENTRE + radius * Math.cos(angle), y: CENTRE + radius * Math.sin(angle)};
}

/** Small numbers of bytes as they are, large ones in KiB or MiB. */
function bytesText(bytes) {
  if (bytes < 8192) return `${bytes} B`;
  const [size, unit] = bytes < 1 << 23 ? [bytes / 1024, "KiB"] : [bytes / (1 << 20), "MiB"];
  return `${Number(size.toFixed(1))} ${unit}`;
}

/** Where a rank sits; with many ranks the seats become smaller. */
function seatTransform(rank, ranks) {
  const {x, y} = pointAt(angleOf(rank, ranks), ranks === 1 ? 0 : SEAT_RADIUS);
  const scale = Math.min(1, 8 / ranks).toFixed(3);
  return `translate(${x.toFixed(1)}px, ${y.toFixed(1)}px) scale(${scale})`;
}

function seat(run, pass, step, rank) {
  const waits = pass.pairs[step][rank] === 0;
  const style = `transform: ${seatTransform(rank, run.ranks)}`;
  const home = {class: "home", style: `fill: ${colour(rank, "chip")}`};
  return svg("g", {class: waits ? "waiting" : "", style},
      svg("rect", {class: "seat", x: -52, y: -33, width: 104, height: 66, rx: 9}),
      svg("text", {class: "rank", y: -14}, waits ? `rank ${rank} waits` : `rank ${rank}`),
      svg("rect", {...home, x: -46, y: -4, width: 32, height: 30, rx: 4}),
      svg("text", {x: -30, y: 16}, `Q${rank}`));
}

/** A block that visits; it is made once and then moves from seat to seat. */
function guest(block) {
  const style = `fill: ${colour(block, "chip")}`;
  return svg("g", {class: "guest", "data-block": block},
      svg("rect", {x: -10, y: -4, width: 56, height: 30, rx: 4, style}),
      svg("text", {x: 18, y: 16, class: "label"}));
}

/** An arrow along the inside of the ring, from a rank towards the one it sends to. */
function arrow(run, from, to, dashed) {
  const clockwise = modulo(to - from, run.ranks) <= run.ranks / 2;
  let sweep = angleOf(to, run.ranks) - angleOf(from, run.ranks);
  if (clockwise && sweep <= 0) sweep += 2 * Math.PI;
  if (!clockwise && sweep > 0) sweep -= 2 * Math.PI;
  const radius = arrowRadius(run.ranks) - (dashed ? 12 : 0);
  const gap = Math.min(0.3, Math.abs(sweep) * 0.16) * Math.sign(sweep);
  const head = Math.min(0.12, Math.abs(sweep) * 0.2) * Math.sign(sweep);
  const first = angleOf(from, run.ranks) + gap, last = first + sweep - 2 * gap - head;
  const [a, b, tip] = [pointAt(first, radius), pointAt(last, radius), pointAt(last + head, radius)];
  const [left, right] = [pointAt(last, radius - 7), pointAt(last, radius + 7)];
  const large = Math.abs(sweep - 2 * gap - head) > Math.PI ? 1 : 0;
  const line = `M${a.x} ${a.y}A${radius} ${radius} 0 ${large} ${clockwise ? 1 : 0} ${b.x} ${b.y}`;
  const point = `M${left.x} ${left.y}L${tip.x} ${tip.y}L${right.x} ${right.y}Z`;
  return svg("g", {}, svg("path", {class: dashed ? "arrow gradient" : "arrow", d: line}),
      svg("path", {class: "arrowhead", d: point}));
}

/** All transfers of a step; those of gradients are dotted. */
function arrows(run, pass, step) {
  const sends = pass.events[step].filter((e) => e.action.startsWith("post") && e.peer !== e.rank);
  const group = svg("g", {});
  for (const event of sends)
    group.append(arrow(run, event.rank, event.peer, event.action === "post_gradient"));
  return group;
}

/** What each rank sends, beside its arrow; nearer to the rank where two send to each other. */
function byteLabels(run, pass, step) {
  const group = svg("g", {});
  if (run.ranks > 12) return group;
  const receiver = (rank) =>
      pass.events[step].find((e) => e.rank === rank && e.action.startsWith("post"))?.peer;
  for (const rank of range(run.ranks)) {
    const bytes = pass.sent[step][rank], to = receiver(rank);
    if (!bytes || to === rank) continue;
    const way = run.ranks > 2 && receiver(to) === rank ? 0.27 : 0.5;
    const half = modulo(to - rank, run.ranks) <= run.ranks / 2 ? way : -way;
    const inside = arrowRadius(run.ranks) - (pass.name === "backward" ? 38 : 30);
    const {x, y} = pointAt(angleOf(rank + half, run.ranks), inside);
    group.append(svg("text", {class: "bytes", x, y: y + 4}, bytesText(bytes)));
  }
  return group;
}

/** One sentence that says what the picture shows. */
function ringSentence(run, pass, step) {
  const held = pass.block[step].map(
      (block, rank) => `rank ${rank} ${block === null ? "no block" : `block ${block}`}`);
  return `${pass.name} pass, step ${step}: ${held.join(", ")}.`;
}

function drawRing(root, run, pass, step) {
  let still = root.querySelector(".still"), moving = root.querySelector(".moving");
  if (moving?.childElementCount !== run.ranks) {
    still = svg("g", {class: "still"});
    moving = svg("g", {class: "moving"}, ...range(run.ranks).map(guest));
    root.replaceChildren(still, moving);
  }
  still.replaceChildren(...range(run.ranks).map((rank) => seat(run, pass, step, rank)),
      ...(run.ranks > 1 ? [arrows(run, pass, step), byteLabels(run, pass, step)] : []),
      svg("text", {class: "centre", x: CENTRE, y: CENTRE + (run.ranks > 1 ? 2 : -70)},
          `t = ${step}`),
      svg("text", {class: "small", x: CENTRE, y: CENTRE + (run.ranks > 1 ? 22 : -50)},
          sum(pass.sent[step]) ? pass.name : `${pass.name}, nothing is sent`));
  for (const element of moving.children) {
    const block = Number(element.dataset.block);
    const rank = pass.block[step].indexOf(block);
    element.style.visibility = rank < 0 ? "hidden" : "visible";
    if (rank >= 0) element.style.transform = seatTransform(rank, run.ranks);
    element.querySelector(".label").textContent =
        run.ranks > 8 ? `KV${block}` : `K${block} V${block}`;
  }
  root.setAttribute("aria-label", `Ring of ${run.ranks}. ${ringSentence(run, pass, step)}`);
}
