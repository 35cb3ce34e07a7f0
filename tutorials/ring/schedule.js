// Who owns which row and who holds which block when: the pure functions on integers of
// reference/layout.hpp, reference/ring_schedule.hpp and reference/balance.hpp, once more, for the
// page. tests/browser compares them with what `ringproof-reference schedule` prints.
// Numbers in parentheses are equations of docs/math.md.

const LAYOUTS = ["contiguous", "zigzag", "striped"];
const modulo = (a, ranks) => ((a % ranks) + ranks) % ranks;
const range = (count) => Array.from({length: count}, (_, index) => index);
const sum = (numbers) => numbers.reduce((total, number) => total + number, 0);

/** First row of chunk c, if `rows` rows are cut into `chunks` chunks (12). */
const chunkBegin = (rows, chunks, c) => Math.floor((c * rows) / chunks);

/** All rows that a rank owns, ascending. */
function rowsOf(layout, rows, ranks, rank) {
  const chunk = (chunks, c) => {
    const first = chunkBegin(rows, chunks, c);
    return range(chunkBegin(rows, chunks, c + 1) - first).map((row) => first + row);
  };
  if (layout === "contiguous") return chunk(ranks, rank);
  if (layout === "zigzag")
    return [...chunk(2 * ranks, rank), ...chunk(2 * ranks, 2 * ranks - 1 - rank)];
  return range(rows).filter((row) => row % ranks === rank);
}

/** The block that a rank holds at a step (13); order "down" is the document's direction. */
const blockAt = (step, rank, ranks, order) =>
    modulo(order === "down" ? rank - step : rank + step, ranks);

/** The neighbour to whom a rank sends. */
const sendTo = (rank, ranks, order) => modulo(order === "down" ? rank + 1 : rank - 1, ranks);

/** The block met last need not travel on: P steps, P - 1 transfers. */
const transfersAfter = (step, ranks) => step < ranks - 1;

/** May query i see key j? A mask is {causal, left, right}; -1: no limit on that side. */
function visible(mask, i, j) {
  if (mask.causal && j > i) return false;
  if (mask.left >= 0 && j < i - mask.left) return false;
  return !(mask.right >= 0 && j > i + mask.right);
}

/**
 * What both the schedule and a recorded trace become; all that the page draws comes from it:
 *   passes  [{name, block[t][r], pairs[t][r], sent[t][r], events[t]}], `block` null: holds none
 *   owned   rows of each rank, or null where only blocks are known (a trace)
 */
function makeSchedule(
    {ranks, rows, layout, mask, order = "down", rowBytes = 512, backward = false}) {
  const owned = range(ranks).map((rank) => rowsOf(layout, rows, ranks, rank));
  const pairsBetween = (rank, block) =>
      sum(owned[rank].map((i) => owned[block].filter((j) => visible(mask, i, j)).length));
  const table = (entry) =>
      range(ranks).map((step) => range(ranks).map((rank) => entry(step, rank)));
  const block = table((step, rank) => blockAt(step, rank, ranks, order));
  const pairs = table((step, rank) => pairsBetween(rank, block[step][rank]));
  const bytes = table((step, rank) => owned[block[step][rank]].length * rowBytes);
  const moved = table((step, rank) => (transfersAfter(step, ranks) ? bytes[step][rank] : 0));
  const passes = [{name: "forward", block, pairs, sent: moved}];
  if (backward) {
    // Behind each block goes its gradient, which makes one hop more: it must come home.
    const sent = table((step, rank) => moved[step][rank] + bytes[step][rank]);
    passes.push({name: "backward", block, pairs, sent});
  }
  for (const pass of passes)
    pass.events = range(ranks).map((step) => scheduledEvents(pass, step, ranks, order));
  return {ranks, rows, layout, mask, order, owned, passes};
}

/** The sends of one step, as a trace would record them. */
function scheduledEvents(pass, step, ranks, order) {
  const gradient = pass.name === "backward";
  const event = (rank, action) =>
      ({step, rank, action, block: pass.block[step][rank], peer: sendTo(rank, ranks, order)});
  const kv = transfersAfter(step, ranks) ? range(ranks).map((rank) => event(rank, "post")) : [];
  return gradient ? [...kv, ...range(ranks).map((rank) => event(rank, "post_gradient"))] : kv;
}

/** A step lasts as long as its busiest rank, because blocks move on together. */
const busiest = (pass, step) => Math.max(...pass.pairs[step]);

/** Share of all ranks' time spent waiting in steps 0 ... `steps` - 1 of a pass. */
function idleFraction(pass, steps = pass.pairs.length) {
  const available = sum(range(steps).map((step) => busiest(pass, step))) * pass.pairs[0].length;
  const worked = sum(range(steps).map((step) => sum(pass.pairs[step])));
  return available > 0 ? 1 - worked / available : 0;
}

/** Work of the busiest rank over the mean: 1 is perfect balance. */
function busiestOverMean(pass) {
  const work = range(pass.pairs[0].length).map((rank) => sum(pass.pairs.map((step) => step[rank])));
  const mean = sum(work) / work.length;
  return mean > 0 ? Math.max(...work) / mean : 1;
}
