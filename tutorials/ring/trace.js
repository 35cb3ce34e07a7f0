// Reads a trace that a tier wrote with --trace (reference/trace.hpp: one JSON object a line) and
// checks that it is a ring: whoever computes with a block holds it, and what arrives was sent.
// Throws an Error whose message names the line.

const FORWARD_ACTIONS = ["post", "compute", "wait"];
const GRADIENT_ACTIONS = ["gradient", "post_gradient", "wait_gradient"];
const TRACE_FIELDS = ["step", "rank", "block", "peer", "bytes", "pairs"];
const MOST_RANKS = 64;
const MOST_LINES = 200000;

function readEvent(text, line) {
  const fail = (what) => {
    throw new Error(`line ${line}: ${what}`);
  };
  let event;
  try {
    event = JSON.parse(text);
  } catch {
    fail("not a JSON object");
  }
  if (event === null || typeof event !== "object" || Array.isArray(event))
    fail("not a JSON object");
  for (const field of TRACE_FIELDS) {
    if (!Number.isSafeInteger(event[field])) fail(`"${field}" is missing or no integer`);
    if (event[field] < (field === "peer" ? -1 : 0)) fail(`"${field}" is negative`);
  }
  if (![...FORWARD_ACTIONS, ...GRADIENT_ACTIONS].includes(event.action)) {
    fail(`"action" is none of ${[...FORWARD_ACTIONS, ...GRADIENT_ACTIONS].join(", ")}`);
  }
  return {...event, line};
}

function readEvents(text) {
  const lines = text.split("\n");
  if (lines.length > MOST_LINES) throw new Error(`more than ${MOST_LINES} lines`);
  const events =
      lines.flatMap((line, number) => (line.trim() ? [readEvent(line, number + 1)] : []));
  if (!events.some((event) => event.action === "compute"))
    throw new Error("no event with the action compute");
  const ranks = events.reduce((most, event) => Math.max(most, event.rank + 1), 1);
  if (ranks > MOST_RANKS) throw new Error(`${ranks} ranks; this page draws up to ${MOST_RANKS}`);
  for (const {line, step, block, peer} of events) {
    if (Math.max(step, block, peer) >= ranks)
      throw new Error(`line ${line}: step, block or peer beyond the ${ranks} ranks`);
  }
  return {events, ranks};
}

/**
 * Forward or backward? Both passes post blocks and wait for them, each at most once a step. So a
 * rank's second event of one kind in one step is the backward pass's. (Gradients may go home
 * straight, so that two of different blocks reach a rank in one step.)
 */
function splitPasses(events) {
  const seen = new Map();
  const passes = [[], []];
  for (const event of events) {
    const gradient = GRADIENT_ACTIONS.includes(event.action);
    const block = gradient ? event.block : "";
    const key = `${event.rank} ${event.step} ${event.action} ${block}`;
    const times = (seen.get(key) ?? 0) + (gradient ? 2 : 1);
    if (times > 2 || (times > 1 && event.action === "compute")) {
      throw new Error(`line ${event.line}: rank ${event.rank} does "${
          event.action}" twice in step ${event.step}`);
    }
    seen.set(key, times);
    passes[times - 1].push(event);
  }
  return passes[1].length ? passes : [passes[0]];
}

/** What arrives was sent: same step, same block, same bytes. */
function checkTransfers(events) {
  const key = (from, to, e) =>
      [from, to, e.step, e.block, e.bytes, e.action.endsWith("gradient")].join(" ");
  const sent = events.filter((e) => e.action.startsWith("post"));
  const posts = new Set(sent.map((e) => key(e.rank, e.peer, e)));
  for (const event of events.filter((e) => e.action.startsWith("wait"))) {
    if (!posts.has(key(event.peer, event.rank, event))) {
      throw new Error(`line ${event.line}: rank ${event.rank} waits for block ${event.block}, ` +
          `which rank ${event.peer} did not send in step ${event.step}`);
    }
  }
}

function passOf(name, events, ranks, forwardPairs) {
  const table = (entry) =>
      range(ranks).map((step) => range(ranks).map((rank) => entry(step, rank)));
  const pass = {
    name,
    block: table((step, rank) => (step === 0 ? rank : null)),
    pairs: table(() => 0),
    sent: table(() => 0),
    events: range(ranks).map(() => [])
  };
  checkTransfers(events);
  for (const {action, step, rank, block} of events) {
    if (action === "wait" && step + 1 < ranks) pass.block[step + 1][rank] = block;
  }
  for (const event of events) {
    const {action, step, rank, block, bytes, pairs, line} = event;
    pass.events[step].push(event);
    if (action.startsWith("post")) pass.sent[step][rank] += bytes;
    const works = action === "compute" || action === "gradient";
    if ((works || action === "post") && pass.block[step][rank] !== block) {
      throw new Error(`line ${line}: rank ${rank} has no block ${block} in step ${step}`);
    }
    // The trace counts pairs in the forward pass; the backward pass meets the same ones.
    if (works)
      pass.pairs[step][rank] = forwardPairs ? (forwardPairs.get(`${rank} ${block}`) ?? 0) : pairs;
  }
  return pass;
}

/** The text of a trace file, as a run that the page can draw (see makeSchedule). */
function readTrace(text) {
  const {events, ranks} = readEvents(text);
  const [forward, backward] = splitPasses(events);
  const pairs = new Map(
      forward.filter((e) => e.action === "compute").map((e) => [`${e.rank} ${e.block}`, e.pairs]));
  const passes = [passOf("forward", forward, ranks)];
  if (backward) passes.push(passOf("backward", backward, ranks, pairs));
  return {ranks, rows: null, owned: null, passes};
}
