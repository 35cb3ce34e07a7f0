"""A browser for tests: Chromium without a window, driven through its debugging pipe.

Only the standard library: the DevTools protocol is JSON, each message ended by a zero byte, on file
descriptors 3 (to the browser) and 4 (from it). Not a general driver: what the tests need, no more.

    with Browser() as browser:
        page = browser.open(path, width=390, height=844, dark=True)
        page.evaluate("document.title")
"""

import base64
import json
import os
import select
import shutil
import subprocess
import tempfile
import time

NAMES = ("chromium", "chromium-browser", "google-chrome")
ANSWER_SECONDS = 60
WAIT_SECONDS = 10


def find():
    """The browser's program, or None."""
    return next((path for name in NAMES if (path := shutil.which(name))), None)


class Browser:
    """One process, with a profile of its own that is deleted with it."""

    def __init__(self):
        self.profile = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        to_browser, self.write_end = os.pipe()
        self.read_end, from_browser = os.pipe()
        # A shell moves them to 3 and 4; from high numbers, so that neither overwrites the other.
        high = [os.dup2(end, 100 + n) for n, end in enumerate((to_browser, from_browser))]
        command = ["bash", "-c", f'exec 3<&{high[0]} 4>&{high[1]}; exec "$0" "$@"', find(),
                   "--headless=new", "--remote-debugging-pipe",
                   f"--user-data-dir={self.profile.name}", "--no-sandbox", "--disable-gpu",
                   "--disable-dev-shm-usage", "--no-first-run", "--disable-extensions",
                   "--disable-background-networking", "--hide-scrollbars",
                   "--force-color-profile=srgb", "about:blank"]
        self.process = subprocess.Popen(command, pass_fds=high, stdin=subprocess.DEVNULL,
                                        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        for end in (to_browser, from_browser, *high):
            os.close(end)
        self.buffer, self.number, self.events = b"", 0, []

    def __enter__(self):
        return self

    def __exit__(self, *_):
        os.close(self.write_end)
        try:
            self.process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        os.close(self.read_end)
        self.profile.cleanup()

    def message(self, seconds):
        """The next message, or None after so many seconds."""
        end = time.monotonic() + seconds
        while b"\0" not in self.buffer:
            if not select.select([self.read_end], [], [], max(0, end - time.monotonic()))[0]:
                return None
            part = os.read(self.read_end, 1 << 16)
            if not part:
                raise RuntimeError("the browser has ended")
            self.buffer += part
        text, _, self.buffer = self.buffer.partition(b"\0")
        return json.loads(text)

    def send(self, method, where=None, **parameters):
        """One command and its result; events that arrive in between are kept."""
        self.number += 1
        request = {"id": self.number, "method": method, "params": parameters}
        if where:
            request["sessionId"] = where
        os.write(self.write_end, json.dumps(request).encode() + b"\0")
        while (answer := self.message(ANSWER_SECONDS)) is not None:
            if answer.get("id") == self.number:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']['message']}")
                return answer["result"]
            self.events.append(answer)
        raise RuntimeError(f"{method}: no answer in {ANSWER_SECONDS} s")

    def open(self, path, **look):
        """A page of its own, loaded; `look` as for Page.look_like."""
        target = self.send("Target.createTarget", url="about:blank")["targetId"]
        where = self.send("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        return Page(self, where, path, **look)


class Page:
    """A tab. `errors` are what its console and its scripts complained about."""

    def __init__(self, browser, where, path, scripts=True, **look):
        self.browser, self.where = browser, where
        for domain in ("Page", "Runtime", "Log", "DOM"):
            self.send(f"{domain}.enable")
        self.send("Emulation.setScriptExecutionDisabled", value=not scripts)
        self.look_like(**look)
        self.load(path)

    def send(self, method, **parameters):
        return self.browser.send(method, self.where, **parameters)

    def look_like(self, width=1280, height=800, dark=False, still=True, scale=1):
        """Window size and what the reader prefers: dark colours, no motion."""
        self.send("Emulation.setDeviceMetricsOverride", width=width, height=height,
                  deviceScaleFactor=scale, mobile=width < 600)
        self.send("Emulation.setEmulatedMedia", features=[
            {"name": "prefers-color-scheme", "value": "dark" if dark else "light"},
            {"name": "prefers-reduced-motion", "value": "reduce" if still else "no-preference"}])

    def load(self, path):
        self.browser.events.clear()
        address = path if ":" in str(path) else f"file://{path}"
        self.send("Page.navigate", url=address)
        end = time.monotonic() + ANSWER_SECONDS
        while not any(event.get("method") == "Page.loadEventFired"
                      for event in self.browser.events):
            if time.monotonic() > end:
                raise RuntimeError(f"{path} does not load")
            if (event := self.browser.message(1)) is not None:
                self.browser.events.append(event)

    @property
    def errors(self):
        self.evaluate("0")  # collects what is on the way
        found = []
        for event in self.browser.events:
            method, given = event.get("method"), event.get("params", {})
            if method == "Runtime.exceptionThrown":
                details = given["exceptionDetails"]
                found.append(details.get("exception", {}).get("description", details["text"]))
            elif method == "Log.entryAdded" and given["entry"]["level"] in ("error", "warning"):
                found.append(given["entry"]["text"])
            elif method == "Runtime.consoleAPICalled" and given["type"] in ("error", "assert"):
                found.append(json.dumps(given["args"]))
        return found

    def evaluate(self, expression):
        """The value of a JavaScript expression; promises are waited for."""
        done = self.send("Runtime.evaluate", expression=expression, returnByValue=True,
                         awaitPromise=True)
        if "exceptionDetails" in done:
            details = done["exceptionDetails"]
            raise RuntimeError(details.get("exception", {}).get("description", details["text"]))
        return done["result"].get("value")

    def wait_for(self, expression):
        """Until the expression is true; False if it stays false."""
        end = time.monotonic() + WAIT_SECONDS
        while not (true := self.evaluate(expression)) and time.monotonic() < end:
            time.sleep(0.02)
        return bool(true)

    def wider_than_window(self):
        """By how many pixels the page is wider than its window; 0: nobody scrolls sideways."""
        return self.evaluate("document.documentElement.scrollWidth - "
                             "document.documentElement.clientWidth")

    def press(self, key, text="", shift=False):
        """A key as a person presses it: Tab, ArrowLeft, "3" ..."""
        codes = {"Tab": 9, "Enter": 13, " ": 32, "End": 35, "Home": 36, "ArrowLeft": 37,
                 "ArrowUp": 38, "ArrowRight": 39, "ArrowDown": 40}
        code = codes.get(key, ord(key[0].upper()))
        given = dict(key=key, windowsVirtualKeyCode=code, modifiers=8 if shift else 0)
        text = text or (key if len(key) == 1 else "\r" if key == "Enter" else "")
        typed = {"text": text} if text else {}
        self.send("Input.dispatchKeyEvent", type="keyDown", **given, **typed)
        self.send("Input.dispatchKeyEvent", type="keyUp", **given)

    def choose_file(self, selector, path):
        """Puts a file into an input of type file, as its dialog would."""
        root = self.send("DOM.getDocument")["root"]["nodeId"]
        node = self.send("DOM.querySelector", nodeId=root, selector=selector)["nodeId"]
        self.send("DOM.setFileInputFiles", files=[str(path)], nodeId=node)

    def screenshot(self, path, whole=False, clip=None):
        given = {"format": "png", "captureBeyondViewport": whole}
        if whole:
            size = self.send("Page.getLayoutMetrics")["cssContentSize"]
            clip = {"x": 0, "y": 0, "width": size["width"], "height": size["height"]}
        if clip:
            given["clip"] = dict(clip, scale=1)
        data = self.send("Page.captureScreenshot", **given)["data"]
        with open(path, "wb") as file:
            file.write(base64.b64decode(data))
