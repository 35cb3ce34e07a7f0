// The tables under the pictures: the state of a row, the work of each rank, a trace's events.

/** An HTML element with a class and children; a string child becomes text. */
function html(name, className = "", ...children) {
  const element = document.createElement(name);
  if (className) element.className = className;
  element.append(...children.map((child) => (child instanceof Node ? child : `${child}`)));
  return element;
}

const cells = (names, name = "td") => names.map((text) => html(name, "", text));
const headings = (...names) => html("thead", "", html("tr", "", ...cells(names, "th")));
const variable = (name) => html("var", "", name);
const minus = (text) => text.replace("-", "−");

/** Three digits behind the point; null has no value yet. */
function number(x) {
  if (x === null) return "–";
  return Number.isFinite(x) ? minus(x.toFixed(3)) : x < 0 ? "−∞" : "none";
}

function blockChip(block) {
  const chip = html("span", "chip", block === null ? "none" : block);
  if (block !== null) chip.style.background = colour(block, "chip");
  return chip;
}

/** At most `most` entries, then dots. */
function shortList(entries, most = 6, separator = "  ") {
  if (entries.length === 0) return "none";
  return entries.slice(0, most).join(separator) + (entries.length > most ? `${separator}…` : "");
}

/** The state after each step so far; rows to come keep their place, so that nothing jumps. */
function drawStates(table, run, step, chosenRow) {
  const lines = statesOf(run, chosenRow).map((state, t) => {
    const scores = shortList(state.scores.map((s) => minus(`${s}`)));
    const numbers = [state.m, state.alpha, state.l, state.o].map(number);
    return html("tr", t === step ? "current" : "", html("th", "", t),
        html("td", "", blockChip(state.block)), html("td", "left scores", t > step ? "" : scores),
        ...cells(numbers.map((text) => (t > step ? "" : text))));
  });
  const head = headings(
      "step t", "block", "visible scores", variable("m"), "α", variable("l"), variable("o"));
  head.querySelectorAll("th")[2].className = "left scores";
  table.replaceChildren(head, html("tbody", "", ...lines));
}

/** The equations (6), (7) of this step with numbers, and the answer (9) after the last one. */
function formulas(run, step, chosenRow) {
  const state = statesOf(run, chosenRow)[step];
  const {before, scores, weights, keys} = state;
  const end = step === run.ranks - 1 ? [answerText(run, state, chosenRow)] : [];
  if (keys.length === 0) return ["The mask hides this block from the row.", ...end];
  const [m, l, o, alpha] = [state.m, state.l, state.o, state.alpha].map(number);
  const shift = state.m < 0 ? `(${m})` : m;
  const products = weights.map((weight, n) => `${number(weight)} · ${value(keys[n])}`);
  return [
    `m′ = max(${number(before.m)}, ${shortList(scores.map(String).map(minus), 4, ", ")}) = ${m}`,
    `α = exp(${number(before.m)} − ${shift}) = ${alpha}`,
    `l′ = ${alpha} · ${number(before.l)} + (${shortList(weights.map(number), 4, " + ")}) = ${l}`,
    `o′ = ${alpha} · ${number(before.o)} + (${shortList(products, 4, " + ")}) = ${o}`,
    ...end,
  ];
}

function answerText(run, {l, o}, chosenRow) {
  const answer = number(o / l), whole = number(dense(run, chosenRow).out);
  const agree = answer === whole ? "✓" : "✗";
  return `out = o / l = ${number(o)} / ${number(l)} = ${answer};  dense softmax: ${whole} ${agree}`;
}

/** The backward pass needs no state: the log-sum-exp L gives back each probability (21). */
function backwardFormulas(run, pass, step, chosenRow) {
  const {logSumExp} = dense(run, chosenRow);
  const rank = run.owned.findIndex((rows) => rows.includes(chosenRow));
  const keys = run.owned[pass.block[step][rank]].filter((j) => visible(run.mask, chosenRow, j));
  const p = keys.map((j) => number(Math.exp(score(chosenRow, j) - logSumExp)));
  return [
    `The forward pass left L = m + ln l = ${number(logSumExp)}; no state is built again.`,
    keys.length ?
        `Probabilities exp(s − L) in block ${pass.block[step][rank]}: ${shortList(p, 6, ", ")}.` :
        `The mask hides block ${pass.block[step][rank]} from the row.`,
    "The rank adds its part to the gradient that travels behind the block, and passes the sum on."
  ];
}

/** Time runs to the right; a step is as wide as its busiest rank, what is hatched is waiting. */
function workBar(run, pass, step, rank) {
  const total = sum(range(pass.pairs.length).map((t) => busiest(pass, t))) || 1;
  const bar = html("div", "bar");
  pass.pairs.forEach((pairs, t) => {
    const longest = busiest(pass, t);
    const part = html("span", t > step ? "later" : ""), work = html("i");
    part.style.width = `${(100 * longest) / total}%`;
    work.style.width = longest ? `${(100 * pairs[rank]) / longest}%` : "0";
    work.style.background = colour(pass.block[t][rank] ?? 0, "now");
    part.append(work);
    bar.append(part);
  });
  return bar;
}

/** Rows as ranges: 0–3, 12–15. */
function rowsText(rows) {
  const runs = [];
  for (const row of rows) {
    if (runs.length && runs.at(-1)[1] === row - 1)
      runs.at(-1)[1] = row;
    else
      runs.push([row, row]);
  }
  return shortList(runs.map(([a, b]) => (a === b ? `${a}` : `${a}–${b}`)), 4, ", ");
}

function drawWork(table, run, pass, step) {
  const steps = range(step + 1);
  const time = sum(steps.map((t) => busiest(pass, t)));
  const lines = range(run.ranks).map((rank) => {
    const worked = sum(steps.map((t) => pass.pairs[t][rank]));
    const waited = time ? Math.round(100 * (1 - worked / time)) : 0;
    const title = html("th", "left", `rank ${rank}`);
    const own = html("td", "left owns", run.owned ? rowsText(run.owned[rank]) : "–");
    return html("tr", "", title, own, html("td", "wide", workBar(run, pass, step, rank)),
        ...cells([worked, `${waited} %`, bytesText(sum(steps.map((t) => pass.sent[t][rank])))]));
  });
  const head = headings("rank", "owns rows", "its time, step by step", "pairs", "waited", "sent");
  head.querySelectorAll("th").forEach((th, n) => {
    if (n < 3) th.className = n === 1 ? "left owns" : "left";
  });
  table.replaceChildren(head, html("tbody", "", ...lines));
}

function drawEvents(table, pass, step) {
  const lines = pass.events[step].map((e) => {
    const peer = e.peer < 0 ? "–" : e.peer, bytes = e.bytes ? bytesText(e.bytes) : "–";
    const pairs = e.action === "compute" ? e.pairs : "–";
    return html("tr", "", html("th", "", e.line), html("td", "", e.rank),
        html("td", "left", e.action), html("td", "", blockChip(e.block)),
        ...cells([peer, bytes, pairs]));
  });
  const head = headings("line", "rank", "action", "block", "peer", "bytes", "pairs");
  head.querySelectorAll("th")[2].className = "left";
  table.replaceChildren(head, html("tbody", "", ...lines));
}

/** A line of mathematics: lone letters are set as variables. */
function mathLine(text) {
  const parts = text.split(/(?<![\p{L}′])([mloLPs]′?)(?![\p{L}])/u);
  return html("span", "", ...parts.map((part, n) => (n % 2 ? variable(part) : part)));
}
