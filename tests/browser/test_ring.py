#!/usr/bin/env python3
"""The interactive ring in a browser: right, usable by keyboard, readable everywhere.

    test_ring.py BIN [TEST...]     BIN holds ringproof-reference and, if built, ringproof-mpi

Exit status 77: no Chromium here, nothing was tested.
"""

import json
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
sys.path[:0] = [str(HERE), str(ROOT / "tutorials/ring")]
import chromium  # noqa: E402
import look  # noqa: E402
import join  # noqa: E402

PAGE = ROOT / "tutorials/ring.html"
SKIPPED = 77
WIDTHS = (look.PHONE, look.DESKTOP)
KEYS = {name: str(n + 1) for n, name in enumerate((
    "example", "four ranks", "causal", "zig-zag", "striped", "window", "backward", "trace"))}


def expect(condition, what):
    if not condition:
        raise AssertionError(what)


def text(page, selector):
    return page.evaluate(f"document.querySelector({json.dumps(selector)}).innerText")


def reference(bin_folder, *words):
    done = subprocess.run([bin_folder / "ringproof-reference", *map(str, words)],
                          capture_output=True, text=True, check=True)
    return done.stdout


def schedules():
    """Problems chosen so that P divides N, does not, exceeds N, and every mask has two sides."""
    sizes = [(1, 5), (2, 4), (3, 10), (4, 16), (5, 3), (7, 40), (8, 64)]
    masks = ["full", "causal", "window:3", "window:2,2", "window:0,5", "causal+window:4"]
    for ranks, rows in sizes:
        for layout in ("contiguous", "zigzag", "striped"):
            for number, mask in enumerate(masks):
                yield ranks, rows, layout, mask, ("down", "up")[(ranks + number) % 2]


def mask_of(word):
    limits = re.search(r"window:(\d+)(?:,(\d+))?", word)
    left, right = limits.groups() if limits else (None, None)
    return {"causal": "causal" in word, "left": int(left or -1) if left else -1,
            "right": int(right) if right else -1}


def the_schedule_of_the_page_is_the_schedule_of_the_program(browser, bin_folder):
    page = browser.open(PAGE)
    count = 0
    for ranks, rows, layout, mask, order in schedules():
        said = json.loads(reference(bin_folder, "schedule", "--ranks", ranks, "--tokens", rows,
                                    "--layout", layout, "--mask", mask, "--order", order,
                                    "--format", "json"))
        problem = {"ranks": ranks, "rows": rows, "layout": layout, "order": order,
                   "mask": mask_of(mask)}
        drawn = page.evaluate(f"""(() => {{
            const run = makeSchedule({json.dumps(problem)});
            const [pass] = run.passes;
            return {{...run, pass, idle: idleFraction(pass), ratio: busiestOverMean(pass)}};
        }})()""")
        where = f"{ranks} ranks, {rows} rows, {layout}, {mask}, {order}"
        expect(drawn["owned"] == said["rows"], f"{where}: rows")
        for name, key in (("block", "block"), ("pairs", "pairs"), ("sent", "bytes_sent")):
            expect(drawn["pass"][name] == [step[key] for step in said["steps"]], f"{where}: {key}")
        expect(drawn["idle"] == said["idle_fraction"], f"{where}: idle")
        expect(drawn["ratio"] == said["busiest_over_mean"], f"{where}: balance")
        count += 1
    print(f"  {count} schedules agree")


def the_backward_schedule_is_what_the_program_records(browser, bin_folder):
    page = browser.open(PAGE)
    trace = join.recorded(bin_folder)["trace.jsonl"]
    read, planned = page.evaluate(f"""[readTrace({json.dumps(trace)}), makeSchedule({{ranks: 4,
        rows: {join.ROWS}, layout: "contiguous", mask: {{causal: true, left: -1, right: -1}},
        rowBytes: {8 * join.COMPONENTS}, backward: true}})].map((run) => run.passes.map(
            ({{block, pairs, sent}}) => ({{block, pairs, sent}})))""")
    expect(len(read) == 2 and read == planned, f"{read} is not {planned}")


def it_steps_with_buttons_and_says_what_happens(browser, _):
    page = browser.open(PAGE)
    expect("Step 1 of 2" in text(page, "#status"), text(page, "#status"))
    expect(page.evaluate("document.getElementById('back').disabled"), "back at the first step")
    page.evaluate("document.getElementById('next').click()")
    expect("Step 2 of 2" in text(page, "#status"), text(page, "#status"))
    expect("nothing is sent" in text(page, "#status"), text(page, "#status"))
    page.press(KEYS["causal"])
    page.press("End")
    expect("3 of 4 ranks wait" in text(page, "#status"), text(page, "#status"))
    page.evaluate("choose({ranks: 5, rows: 23, layout: 'striped', mask: 'window', reach: 2})")
    expect(page.evaluate("document.querySelectorAll('#ring .guest').length") == 5, "five blocks")
    expect(page.errors == [], page.errors)


def the_row_shows_the_worked_example(browser, _):
    page = browser.open(PAGE)
    expect("1.368" in text(page, "#states") and "2.368" in text(page, "#states"), "block A")
    page.press("ArrowRight")
    states, formula = text(page, "#states"), text(page, "#formula")
    for figure in ("0.368", "1.553", "4.070"):  # alpha, l, o of the document's block B
        expect(figure in states, f"{figure} is not in {states}")
    expect("2.621" in formula and "✓" in formula, formula)
    page.press("ArrowDown")
    expect(page.evaluate("document.getElementById('row').value") == "1", "row by key")
    expect("✓" in text(page, "#formula"), text(page, "#formula"))
    page.evaluate("choose({ranks: 4, rows: 16, mask: 'causal'}, 3)")  # row 1 sees block 0 alone
    expect("hides" in text(page, "#formula") and "✓" in text(page, "#formula"),
           text(page, "#formula"))


def every_row_ends_at_the_dense_softmax(browser, _):
    page = browser.open(PAGE)
    worst = page.evaluate("""(() => {
        let worst = 0;
        const masks = [[false, -1], [true, -1], [true, 3]];
        for (const layout of LAYOUTS) for (const [causal, left] of masks) {
          for (const ranks of [1, 3, 4]) {
            const run = makeSchedule({ranks, rows: 13, layout, mask: {causal, left, right: -1}});
            for (const i of range(13)) {
              const {l, o} = statesOf(run, i).at(-1);
              worst = Math.max(worst, Math.abs(o / l - dense(run, i).out));
            }
          }
        }
        return worst;
    })()""")
    # A sum of 13 terms of at most 4 in binary64: a bound of some 100 roundings, far above.
    expect(worst <= 100 * 4 * 2.0 ** -52, worst)


def keys_alone_are_enough(browser, _):
    page = browser.open(PAGE)
    seen = []
    for _ in range(40):
        page.press("Tab")
        seen.append(page.evaluate("""(() => {
            const e = document.activeElement, {outlineStyle, outlineWidth} = getComputedStyle(e);
            const visible = outlineStyle !== "none" && parseFloat(outlineWidth) >= 2;
            return [e.id || e.textContent.trim(), visible];
        })()"""))
        if seen[-1][0] == "link":
            break
    names = [name for name, _ in seen]
    for name in ("ranks", "rows", "layout", "mask", "backward", "play", "next", "last", "step",
                 "sort", "row", "file", "shipped", "link"):
        expect(name in names, f"{name} is not reached by Tab: {names}")
    expect(all(visible for _, visible in seen), f"without a visible focus: {seen}")
    page.load(PAGE)
    page.press(KEYS["causal"])
    page.press("ArrowRight")
    page.press("ArrowRight")
    expect("Step 3 of 4" in text(page, "#status"), text(page, "#status"))
    page.press("Home")
    page.press(" ")
    expect("pause" in text(page, "#play"), "space plays")
    page.press(" ")
    expect("play" in text(page, "#play"), "space pauses")
    expect(page.errors == [], page.errors)


def it_plays_traces_of_the_tiers(browser, bin_folder):
    page = browser.open(PAGE)
    page.press(KEYS["trace"])
    expect("Forward, step 1 of 4" in text(page, "#status"), text(page, "#status"))
    page.press("End")
    expect("Backward, step 4 of 4" in text(page, "#status"), text(page, "#status"))
    with tempfile.TemporaryDirectory() as folder:
        case, trace = pathlib.Path(folder) / "case", pathlib.Path(folder) / "mine.jsonl"
        join.write_case(case)
        reference(bin_folder, case, "-o", f"{folder}/o", "--ranks", 3, "--layout", "zigzag",
                  "--order", "up", "--trace", trace)
        page.choose_file("#file", trace)
        expect(page.wait_for("view.run.ranks === 3"), "the chosen file is shown")
        expect("mine.jsonl: 3 ranks" in text(page, "#status"), text(page, "#status"))
        page.evaluate(f"""(() => {{
            const data = new DataTransfer();
            data.items.add(new File([{json.dumps(trace.read_text())}], "dropped.jsonl"));
            const drop = new DragEvent("drop", {{dataTransfer: data, bubbles: true}});
            document.body.dispatchEvent(drop);
        }})()""")
        expect(page.wait_for("view.trace === 'dropped.jsonl'"), "the dropped file is shown")
        mpi = bin_folder / "ringproof-mpi"
        if mpi.is_file() and shutil.which("mpirun"):
            done = subprocess.run(["mpirun", "--allow-run-as-root", "--oversubscribe", "-n", "4",
                                   mpi, case, "-o", f"{folder}/o", "--backward", "--trace", trace],
                                  capture_output=True, text=True)
            expect(done.returncode == 0, done.stderr)
            page.choose_file("#file", trace)
            expect(page.wait_for("view.run.ranks === 4"), text(page, "#error"))
            for _ in range(8):
                page.press("ArrowRight")
        else:
            print("  skipped: traces of ringproof-mpi, which is not here")
    expect(page.errors == [], page.errors)


def a_bad_trace_is_refused_by_line(browser, _):
    page = browser.open(PAGE)
    lines = (ROOT / "tutorials/ring/trace.jsonl").read_text().splitlines()

    def edited(number, before, after):
        expect(before in lines[number - 1], lines[number - 1])
        return "\n".join([*lines[:number - 1], lines[number - 1].replace(before, after),
                          *lines[number:]])
    bad = {
        "no event": "",
        "line 1: not a JSON object": "safetensors",
        "line 2: not a JSON object": lines[0] + "\n[]",
        'line 3: "bytes" is missing': edited(3, '"bytes":128,', ""),
        'line 4: "step" is negative': edited(4, '"step":0', '"step":-1'),
        'line 5: "action" is none of': edited(5, "compute", "think"),
        "line 5: rank 0 has no block 2": edited(5, '"block":0', '"block":2'),
        "which rank 3 did not send": edited(9, '"block":3', '"block":2'),
        "beyond the 4 ranks": edited(6, '"block":1', '"block":9'),
        "twice in step 0": edited(6, '"rank":1', '"rank":0'),
        "65 ranks": edited(6, '"rank":1', '"rank":64'),
        "<img src=x onerror=alert(1)>": "{}",
    }
    for message, trace in bad.items():
        name = message if message.startswith("<") else "file"
        page.evaluate(f"showTrace({json.dumps(trace)}, {json.dumps(name)})")
        shown = text(page, "#error")
        expect(message in shown, f"'{message}' is not in '{shown}'")
        expect("Step 1 of 2" in text(page, "#status"), "the page stays as it was")
    expect(page.errors == [], page.errors)


def a_table_that_scrolls_keeps_its_keys(browser, _):
    page = browser.open(PAGE, width=390)
    page.press(KEYS["trace"])
    page.evaluate("document.querySelector('#events').parentElement.focus()")
    before = text(page, "#status")
    page.press("ArrowRight")
    wider = page.evaluate("document.activeElement.scrollWidth - document.activeElement.clientWidth")
    expect((text(page, "#status") == before) == (wider > 0), "the key scrolls the table, or steps")


def a_link_opens_the_view_it_names(browser, _):
    page = browser.open(f"file://{PAGE}#ranks=6&rows=30&layout=striped&mask=causal&time=2&row=7")
    choice = page.evaluate("({...view.choice, time: view.time, row: view.row})")
    expect((choice["ranks"], choice["rows"], choice["layout"], choice["time"], choice["row"])
           == (6, 30, "striped", 2, 7), choice)
    page = browser.open(f"file://{PAGE}#ranks=999&layout=%3Cb%3E&rows=x&time=-3")
    choice = page.evaluate("({...view.choice, time: view.time})")
    expect((choice["ranks"], choice["layout"], choice["time"]) == (8, "contiguous", 0), choice)
    expect(page.errors == [], page.errors)


def it_is_readable_at_both_widths_light_and_dark(browser, _):
    for width, dark in look.LOOKS:
        page = browser.open(PAGE, width=width, dark=dark)
        for name in ("example", "causal", "backward", "trace"):
            page.press(KEYS[name])
            page.press("ArrowRight")
            found = look.problems(page, f"{name} at {look.name(width, dark)}")
            expect(found == [], found)


def the_contrast_check_sees_grey_on_grey(browser, _):
    page = browser.open(PAGE)
    page.evaluate("document.querySelector('h1').style.color = '#999'")
    page.evaluate("document.querySelector('.rank').style.fill = '#bbb'")
    low = page.evaluate(look.CONTRAST)
    expect([entry["text"] for entry in low] == ["The ring, step by step", "rank 0"], low)


def without_scripts_it_still_says_something(browser, _):
    for width in WIDTHS:
        page = browser.open(PAGE, scripts=False, width=width)
        root = page.send("DOM.getDocument", depth=-1)["root"]["nodeId"]
        app = page.send("DOM.querySelector", nodeId=root, selector="#app")["nodeId"]
        drawing = page.send("DOM.querySelector", nodeId=root, selector="noscript svg")["nodeId"]
        expect(drawing != 0, "the drawing is in the page")
        box = page.send("DOM.getBoxModel", nodeId=drawing)["model"]
        expect(250 < box["width"] < width and box["height"] > 100, f"the drawing: {box}")
        try:
            page.send("DOM.getBoxModel", nodeId=app)
            raise AssertionError("dead controls are shown")
        except RuntimeError:
            pass


def main(arguments):
    if not chromium.find():
        print("ring in a browser: skipped, no chromium")
        return SKIPPED
    bin_folder, chosen = pathlib.Path(arguments[0]).resolve(), arguments[1:]
    tests = [the_schedule_of_the_page_is_the_schedule_of_the_program,
             the_backward_schedule_is_what_the_program_records,
             it_steps_with_buttons_and_says_what_happens, the_row_shows_the_worked_example,
             every_row_ends_at_the_dense_softmax, keys_alone_are_enough,
             a_table_that_scrolls_keeps_its_keys, it_plays_traces_of_the_tiers,
             a_bad_trace_is_refused_by_line, a_link_opens_the_view_it_names,
             it_is_readable_at_both_widths_light_and_dark, the_contrast_check_sees_grey_on_grey,
             without_scripts_it_still_says_something]
    failed = 0
    with chromium.Browser() as browser:
        for test in tests:
            if chosen and not any(word in test.__name__ for word in chosen):
                continue
            try:
                test(browser, bin_folder)
                print(f"ok    {test.__name__.replace('_', ' ')}")
            except AssertionError as error:
                failed += 1
                print(f"FAIL  {test.__name__.replace('_', ' ')}: {error}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
