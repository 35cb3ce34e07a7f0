// Draws the N x N grid of (query, key) pairs, or for a trace the P x P grid of (rank, block) pairs:
// which are computed in this step, which were before, which the mask hides.

const GRID_LEFT = 34, GRID_TOP = 34, GRID_SIZE = 400;

/** The grid as numbers: who owns each line, and which pairs belong to whom at all. */
function gridOf(run, sorted) {
  if (!run.owned) {  // a trace knows ranks and blocks, but no rows
    const met = new Set();
    const {block, pairs} = run.passes[0];
    block.forEach((held, t) => held.forEach((b, r) => {
      if (pairs[t][r] > 0) met.add(`${r} ${b}`);
    }));
    return {
      lines: range(run.ranks),
      owner: range(run.ranks),
      visible: (r, b) => met.has(`${r} ${b}`)
    };
  }
  const owner = [];
  run.owned.forEach((rows, rank) => rows.forEach((row) => {
    owner[row] = rank;
  }));
  const lines = sorted ? run.owned.flat() : range(run.rows);
  return {lines, owner, visible: (i, j) => visible(run.mask, i, j)};
}

/** In which step of a pass each rank holds each block; undefined: never. */
function stepsOf(pass) {
  const step = pass.block[0].map(() => []);
  pass.block.forEach((held, t) => held.forEach((block, rank) => {
    if (block !== null) step[rank][block] = t;
  }));
  return step;
}

/** The outlines of all cells of one look, joined into one path each. */
function cellPaths(grid, pass, step, cell) {
  const paths = new Map();
  const met = stepsOf(pass);
  grid.lines.forEach((i, line) => {
    grid.lines.forEach((j, column) => {
      const when = met[grid.owner[i]][grid.owner[j]];
      let look = null;
      if (!grid.visible(i, j))
        look = "masked";
      else if (when === step)
        look = `now ${grid.owner[j]}`;
      else if (when < step)
        look = `done ${grid.owner[j]}`;
      if (!look) return;
      const x = (GRID_LEFT + column * cell).toFixed(2), y = (GRID_TOP + line * cell).toFixed(2);
      const d = `M${x} ${y}h${cell}v${cell}h${-cell}z`;
      paths.set(look, (paths.get(look) ?? "") + d);
    });
  });
  return [...paths].map(([look, d]) => {
    const [kind, block] = look.split(" ");
    return kind === "masked" ?
        svg("path", {class: "masked-cells", d}) :
        svg("path", {class: `cells ${kind}`, d, style: `fill: ${colour(Number(block), kind)}`});
  });
}

/** The pattern of masked cells: told from the others without colour. */
function hatch() {
  const line = svg("path", {class: "hatch-line", d: "M0 0V6"});
  const units = {patternUnits: "userSpaceOnUse", patternTransform: "rotate(45)"};
  return svg("pattern", {id: "hatch", width: 6, height: 6, ...units}, line);
}

/** Neighbouring lines of one owner: [first, count, owner]. */
function runsOf(grid) {
  const runs = [];
  grid.lines.forEach((row, line) => {
    const last = runs.at(-1);
    if (last && last[2] === grid.owner[row])
      last[1] += 1;
    else
      runs.push([line, 1, grid.owner[row]]);
  });
  return runs;
}

/** Colours of the owners along both edges, with their numbers where there is room. */
function ownerStrips(grid, cell) {
  const strips = [];
  for (const [first, count, owner] of runsOf(grid)) {
    const x = GRID_LEFT + first * cell, y = GRID_TOP + first * cell, length = count * cell;
    const look = {class: "owner", style: `fill: ${colour(owner, "chip")}`};
    strips.push(svg("rect", {...look, x: GRID_LEFT - 19, y, width: 16, height: length}),
        svg("rect", {...look, x, y: GRID_TOP - 19, width: length, height: 16}));
    if (length < 11) continue;
    strips.push(svg("text", {class: "small", x: GRID_LEFT - 11, y: y + length / 2 + 4}, `${owner}`),
        svg("text", {class: "small", x: x + length / 2, y: GRID_TOP - 7}, `${owner}`));
  }
  return strips;
}

function gridLines(grid, cell) {
  const end = GRID_LEFT + GRID_SIZE, bottom = GRID_TOP + GRID_SIZE;
  const cross = (line) => `M${GRID_LEFT} ${GRID_TOP + line * cell}H${end}` +
      `M${GRID_LEFT + line * cell} ${GRID_TOP}V${bottom}`;
  const path = (places) => places.map(cross).join("");
  const all = grid.lines.length <= 40 ? range(grid.lines.length) : [];
  return [
    svg("path", {class: "lines", d: path(all)}),
    svg("path", {class: "borders", d: path(runsOf(grid).map(([first]) => first))}),
    svg("rect", {class: "frame", x: GRID_LEFT, y: GRID_TOP, width: GRID_SIZE, height: GRID_SIZE})
  ];
}

function drawGrid(root, run, pass, step, chosenRow, sorted) {
  const grid = gridOf(run, sorted);
  const cell = GRID_SIZE / grid.lines.length;
  const middle = GRID_TOP + GRID_SIZE / 2;
  const [queries, keys] = run.owned ? ["queries i", "keys j"] : ["ranks", "blocks"];
  root.replaceChildren(hatch(),
      svg("text", {class: "small", x: GRID_LEFT + GRID_SIZE / 2, y: 11}, `${keys} →`),
      svg("text", {class: "small", transform: `translate(11 ${middle}) rotate(-90)`},
          `← ${queries}`),
      ...cellPaths(grid, pass, step, cell), ...ownerStrips(grid, cell), ...gridLines(grid, cell));
  if (run.owned) {
    const line = grid.lines.indexOf(chosenRow);
    const place = {x: GRID_LEFT, y: GRID_TOP + line * cell, width: GRID_SIZE, height: cell};
    root.append(svg("rect", {class: "chosen", ...place}));
  }
  root.classList.toggle("rows", Boolean(run.owned));
  const done = sum(pass.pairs.slice(0, step).flat()), now = sum(pass.pairs[step]);
  root.setAttribute("aria-label",
      `${now} pairs are computed in this step, ${done} were before, ` +
          `of ${sum(pass.pairs.flat())} that the mask leaves.`);
}

/** The row under a pointer. */
function rowAt(root, run, sorted, event) {
  const box = root.getBoundingClientRect();
  const scale = 440 / Math.min(box.width, box.height);
  const y = (event.clientY - box.top - box.height / 2) * scale + 220;
  const line = Math.floor(((y - GRID_TOP) / GRID_SIZE) * run.rows);
  return gridOf(run, sorted).lines[line];
}
