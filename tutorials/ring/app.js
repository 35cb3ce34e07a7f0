// The page: what was chosen, the step it stands at, and what keys, buttons and files do to them.

const PRESETS = [
  ["the document’s example", {ranks: 2, rows: 4, layout: "contiguous", mask: "full"}, 0],
  ["four ranks", {ranks: 4, rows: 16, layout: "contiguous", mask: "full"}, 0],
  ["causal", {ranks: 4, rows: 16, layout: "contiguous", mask: "causal"}, 12],
  ["zig-zag", {ranks: 4, rows: 16, layout: "zigzag", mask: "causal"}, 12],
  ["striped", {ranks: 4, rows: 16, layout: "striped", mask: "causal"}, 12],
  ["window", {ranks: 4, rows: 32, layout: "contiguous", mask: "causal+window", reach: 6}, 16],
  ["backward", {ranks: 4, rows: 16, layout: "zigzag", mask: "causal", backward: true}, 12],
  ["a recorded trace", null, 0],
];
const DEFAULTS = {reach: 4, backward: false};
const PLAY_MILLISECONDS = 1400;
const MOST_BYTES = 1 << 25;

const $ = (id) => document.getElementById(id);
const view = {
  choice: {...DEFAULTS, ...PRESETS[0][1]},
  time: 0,
  row: 0,
  sorted: false,
  trace: null,
  run: null,
  timer: 0
};

const whole = (text, least, most) =>
    Math.min(most, Math.max(least, Math.trunc(Number(text)) || least));

function maskOf({mask, reach}) {
  const window = mask.includes("window");
  return {
    causal: mask.includes("causal"),
    left: window ? reach : -1,
    right: mask === "window" ? reach : -1
  };
}

/** Time counts the steps of all passes; this is the pass and the step in it. */
function place() {
  const pass = view.run.passes[Math.floor(view.time / view.run.ranks)];
  return {pass, step: view.time % view.run.ranks};
}
const lastTime = () => view.run.ranks * view.run.passes.length - 1;

function statusText(pass, step) {
  const {run} = view;
  const name = run.passes.length > 1 ?
      (pass.name === "forward" ? "Forward, step" : "Backward, step") :
      "Step";
  const working = pass.pairs[step].filter((pairs) => pairs > 0).length;
  const waiting = run.ranks - working;
  const sent = sum(pass.sent[step]);
  return `${name} ${step + 1} of ${run.ranks}: ${sum(pass.pairs[step])} pairs computed, ` +
      `${waiting === 0 ? "nobody waits" : `${waiting} of ${run.ranks} ranks wait`}, ` +
      `${sent ? `${bytesText(sent)} on the way` : "nothing is sent"}.`;
}

function workNote(pass) {
  const idle = (100 * idleFraction(pass)).toFixed(1), ratio = busiestOverMean(pass).toFixed(3);
  return `Over the whole ${pass.name} pass ranks wait ${idle} % of the time; the busiest has ${
             ratio} times the mean work. ` +
      (view.trace ? "Pairs and bytes are those that the program recorded." :
                    "A key and its value are 512 bytes; a step lasts as long as its busiest rank.");
}

function showForm() {
  for (const [id, value] of Object.entries(view.choice)) {
    if (id === "backward")
      $(id).checked = value;
    else if ($(id) !== document.activeElement || $(id).type !== "number")
      $(id).value = value;
  }
  $("reach").parentElement.hidden = !view.choice.mask.includes("window");
  $("row").max = view.choice.rows - 1;
  if ($("row") !== document.activeElement) $("row").value = view.row;
  PRESETS.forEach(([, preset], n) => {
    $("presets").children[n].setAttribute("aria-pressed", isShown(preset));
  });
}

/** Is the page at this example? Its reach counts only if its mask is a window. */
function isShown(preset) {
  if (!preset || view.trace) return !preset && Boolean(view.trace);
  const {reach, ...rest} = {...DEFAULTS, ...preset};
  return Object.entries(rest).every(([key, value]) => view.choice[key] === value) &&
      (view.choice.reach === reach || !preset.mask.includes("window"));
}

function draw() {
  const {pass, step} = place();
  const {run, row, sorted} = view;
  drawRing($("ring"), run, pass, step);
  drawGrid($("grid"), run, pass, step, row, sorted);
  drawWork($("work"), run, pass, step);
  $("work-note").textContent = workNote(pass);
  $("status").textContent = statusText(pass, step);
  for (const id of ["controls", "row-card", "sort-label"]) $(id).hidden = Boolean(view.trace);
  for (const id of ["events-card", "leave"]) $(id).hidden = !view.trace;
  $("work").classList.toggle("trace", Boolean(view.trace));
  if (view.trace)
    drawEvents($("events"), pass, step);
  else
    drawRow(pass, step);
  $("step").max = lastTime();
  $("step").value = view.time;
  $("step").setAttribute("aria-valuetext", `${pass.name} step ${step}`);
  $("first").disabled = $("back").disabled = view.time === 0;
  $("last").disabled = $("next").disabled = view.time === lastTime();
  $("play").textContent = view.timer ? "⏸ pause" : "▶ play";
  $("play").setAttribute("aria-label", view.timer ? "Pause" : "Play");
  $("link").href =
      view.trace ? "#" : `#${new URLSearchParams({...view.choice, time: view.time, row})}`;
  showForm();
}

function drawRow(pass, step) {
  const {run, row} = view;
  const forward = pass.name === "forward";
  drawStates($("states"), run, forward ? step : run.ranks - 1, row);
  $("row-owner").textContent = `at rank ${run.owned.findIndex((rows) => rows.includes(row))}`;
  const lines = forward ? formulas(run, step, row) : backwardFormulas(run, pass, step, row);
  $("formula").replaceChildren(...lines.map(mathLine));
}

function go(time) {
  view.time = Math.min(lastTime(), Math.max(0, time));
  if (view.timer && view.time === lastTime()) stop();
  draw();
}

function stop() {
  clearInterval(view.timer);
  view.timer = 0;
}

function play() {
  if (view.timer) {
    stop();
  } else {
    if (view.time === lastTime()) view.time = 0;
    view.timer = setInterval(() => go(view.time + 1), PLAY_MILLISECONDS);
  }
  draw();
}

/** Takes a new choice; time starts again. */
function choose(choice, time = 0) {
  stop();
  view.trace = null;
  view.choice = {...view.choice, ...choice};
  view.run = makeSchedule({...view.choice, mask: maskOf(view.choice)});
  view.row = Math.min(view.row, view.choice.rows - 1);
  $("error").textContent = "";
  view.time = 0;
  go(time);
}

function chooseRow(row) {
  if (view.trace || !(row >= 0 && row < view.choice.rows)) return;
  view.row = row;
  draw();
}

/** Shows a trace, or says what is wrong with it and leaves the page as it was. */
function showTrace(text, name) {
  let run;
  try {
    run = readTrace(text);
  } catch (error) {
    $("error").textContent = `${name}: ${error.message}`;
    return;
  }
  stop();
  Object.assign(view, {trace: name, run, time: 0});
  $("error").textContent = "";
  draw();
  const passes = run.passes.map((pass) => pass.name).join(" and ");
  $("status").textContent = `${name}: ${run.ranks} ranks, ${passes}. ${$("status").textContent}`;
}

async function readFile(file) {
  if (!file) return;
  if (file.size > MOST_BYTES)
    $("error").textContent = `${file.name}: ${bytesText(file.size)} are too many for a trace`;
  else
    showTrace(await file.text(), file.name);
  $("file").value = "";  // the same file, written anew, can be chosen again
}

function usePreset(n) {
  const [name, choice, row] = PRESETS[n];
  if (choice) {
    view.row = row;
    choose({...DEFAULTS, ...choice});
  } else {
    showTrace($("trace").textContent, name);
  }
}

function onKey(event) {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  const {tagName, type, scrollWidth, clientWidth} = event.target;
  if (tagName === "DIV" && scrollWidth > clientWidth) return;  // a table that the keys scroll
  if (tagName === "SELECT" || (tagName === "INPUT" && type !== "checkbox")) return;
  const onControl = ["BUTTON", "INPUT", "A"].includes(tagName);  // the space bar is theirs
  const actions = {
    ArrowLeft: () => go(view.time - 1),
    ArrowRight: () => go(view.time + 1),
    Home: () => go(0),
    End: () => go(lastTime()),
    ArrowUp: () => chooseRow(view.row - 1),
    ArrowDown: () => chooseRow(view.row + 1),
    " ": onControl ? null : play,
  };
  const preset = Number(event.key) - 1;
  const action = PRESETS[preset] ? () => usePreset(preset) : actions[event.key];
  if (!action) return;
  event.preventDefault();
  action();
}

function listen() {
  const bounds = {ranks: [1, 8], rows: [1, 64], reach: [0, 63]};
  for (const [id, [least, most]] of Object.entries(bounds)) {
    $(id).addEventListener("input", () => {
      if ($(id).value) choose({[id]: whole($(id).value, least, most)});
    });
    $(id).addEventListener("blur", () => {
      $(id).value = view.choice[id];
    });
  }
  for (const id of ["layout", "mask"])
    $(id).addEventListener("change", () => choose({[id]: $(id).value}));
  $("backward")
      .addEventListener("change", () => choose({backward: $("backward").checked}, view.time));
  $("controls").addEventListener("submit", (event) => event.preventDefault());
  $("row").addEventListener("input", () => {
    if ($("row").value) chooseRow(whole($("row").value, 0, view.choice.rows - 1));
  });
  $("sort").addEventListener("change", () => {
    view.sorted = $("sort").checked;
    draw();
  });
  $("step").addEventListener("input", () => go(Number($("step").value)));
  $("first").addEventListener("click", () => go(0));
  $("back").addEventListener("click", () => go(view.time - 1));
  $("next").addEventListener("click", () => go(view.time + 1));
  $("last").addEventListener("click", () => go(lastTime()));
  $("play").addEventListener("click", play);
  $("grid").addEventListener("click", (event) => {
    if (view.run.owned) chooseRow(rowAt($("grid"), view.run, view.sorted, event));
  });
  $("shipped").addEventListener("click", () => usePreset(PRESETS.length - 1));
  $("leave").addEventListener("click", () => choose({}));
  $("file").addEventListener("change", () => readFile($("file").files[0]));
  document.addEventListener("keydown", onKey);
  document.addEventListener("dragover", (event) => {
    event.preventDefault();
    document.body.classList.add("dragging");
  });
  document.addEventListener("dragleave", () => document.body.classList.remove("dragging"));
  document.addEventListener("drop", (event) => {
    event.preventDefault();
    document.body.classList.remove("dragging");
    readFile(event.dataTransfer.files[0]);
  });
  window.addEventListener("hashchange", readHash);
}

/** A link's #ranks=4&layout=zigzag&... ; what it does not say or says wrongly stays as it is. */
function readHash() {
  const given = new URLSearchParams(location.hash.slice(1));
  const choice = {};
  if (given.has("ranks")) choice.ranks = whole(given.get("ranks"), 1, 8);
  if (given.has("rows")) choice.rows = whole(given.get("rows"), 1, 64);
  if (given.has("reach")) choice.reach = whole(given.get("reach"), 0, 63);
  if (LAYOUTS.includes(given.get("layout"))) choice.layout = given.get("layout");
  if (["full", "causal", "window", "causal+window"].includes(given.get("mask")))
    choice.mask = given.get("mask");
  if (given.has("backward")) choice.backward = given.get("backward") === "true";
  if (given.has("row")) view.row = whole(given.get("row"), 0, 63);
  choose(choice, whole(given.get("time"), 0, 64));
}

PRESETS.forEach(([name], n) => {
  const button = html("button", "", html("b", "", n + 1), name);
  button.type = "button";
  button.addEventListener("click", () => usePreset(n));
  $("presets").append(button);
});
listen();
$("app").hidden = false;
readHash();
