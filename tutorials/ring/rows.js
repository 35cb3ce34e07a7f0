// One query row in numbers: the state (m, l, o) as blocks arrive, (6) and (7) of docs/math.md, the
// answer (9), and the dense softmax (2) to compare with.
// The problem is the document's worked example, continued: keys 1 2 3 0 and values 1 2 3 4 repeat,
// and query 0 is 1, so that its scores are the keys. With P = 2 and N = 4 it is the example itself.

const KEYS = [1, 2, 3, 0];
const VALUES = [1, 2, 3, 4];
const QUERIES = [1, 0.5, -1, 2];
const score = (i, j) => QUERIES[i % QUERIES.length] * KEYS[j % KEYS.length];
const value = (j) => VALUES[j % VALUES.length];

const emptyState = () => ({m: -Infinity, l: 0, o: 0});

/** Folds the visible keys of a block into a state; says all that a reader wants to see of it. */
function absorb(state, i, keys) {
  const scores = keys.map((j) => score(i, j));
  const m = Math.max(state.m, ...scores);  // m' = max(m, max_j s_j)   (6)
  if (m === -Infinity)
    return {...state, alpha: null, scores, keys, weights: []};  // nothing seen yet
  const alpha = Math.exp(state.m - m);                          // 0 for the first visible block
  const weights = scores.map((s) => Math.exp(s - m));
  const l = alpha * state.l + sum(weights);  // (7)
  const o = alpha * state.o + sum(weights.map((w, n) => w * value(keys[n])));
  return {m, l, o, alpha, scores, keys, weights};
}

/** The states of row i after each step of the forward pass of a schedule. */
function statesOf(run, i) {
  const rank = run.owned.findIndex((rows) => rows.includes(i));
  let state = emptyState();
  return run.passes[0].block.map((held, step) => {
    const keys = run.owned[held[rank]].filter((j) => visible(run.mask, i, j));
    const before = state;
    state = absorb(state, i, keys);
    return {...state, before, step, rank, block: held[rank]};
  });
}

/** Dense softmax attention of row i, straight from the definition (2). */
function dense(run, i) {
  const keys = range(run.rows).filter((j) => visible(run.mask, i, j));
  const largest = Math.max(...keys.map((j) => score(i, j)));
  const weights = keys.map((j) => Math.exp(score(i, j) - largest));
  const total = sum(weights);
  return {
    out: sum(weights.map((w, n) => w * value(keys[n]))) / total,
    logSumExp: largest + Math.log(total)
  };
}
