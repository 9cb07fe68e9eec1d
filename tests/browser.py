"""Headless Chromium, driven by the DevTools protocol over a pipe."""

import base64
import itertools
import json
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

BINARIES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
OPTIONS = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-sync"),
    *("--disable-background-networking", "--disable-component-update", "--disable-dev-shm-usage"),
    *("--hide-scrollbars", "--remote-debugging-pipe"),
)


def installed():
    """The path of a browser, or None."""
    return next((found for name in BINARIES if (found := shutil.which(name))), None)


class Browser:
    """One page of a browser; a context manager.

    Attributes:
        problems: the exceptions and requests of the page so far.
    """

    def __init__(self, width=1400, height=900):
        self.folder = tempfile.mkdtemp(prefix="browser")
        reads, self._requests = os.pipe()
        self._replies, writes = os.pipe()

        # The browser reads requests from descriptor 3 and writes replies to descriptor 4.
        redirected = f'exec "$@" 3<&{reads} 4>&{writes}'
        self._process = subprocess.Popen(
            [
                *("bash", "-c", redirected, "browser", installed(), *OPTIONS),
                *(f"--user-data-dir={self.folder}", "about:blank"),
            ],
            pass_fds=(reads, writes),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(reads)
        os.close(writes)
        self._numbers = itertools.count(1)
        self._buffer = b""
        self._session = None
        self.problems = []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        attached = self.call("Target.attachToTarget", targetId=target, flatten=True)
        self._session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Network"):
            self.call(f"{domain}.enable")
        self.resize(width, height)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        try:
            self._session = None
            self.call("Browser.close")
        except OSError:
            self._process.kill()
        self._process.wait(30)
        os.close(self._requests)
        os.close(self._replies)
        shutil.rmtree(self.folder, ignore_errors=True)

    def call(self, method, **parameters):
        """The result of a method of the protocol."""
        number = next(self._numbers)
        message = {"id": number, "method": method, "params": parameters}
        if self._session is not None:
            message["sessionId"] = self._session
        os.write(self._requests, json.dumps(message).encode() + b"\0")
        while True:
            reply = self._read()
            if reply.get("id") == number:
                if "error" in reply:
                    raise RuntimeError(f"{method}: {reply['error']}")
                return reply["result"]
            self._notice(reply)

    def _notice(self, event):
        if event.get("method") == "Runtime.exceptionThrown":
            details = event["params"]["exceptionDetails"]
            self.problems.append(details.get("exception", {}).get("description", details["text"]))
        if event.get("method") == "Network.requestWillBeSent":
            url = event["params"]["request"]["url"]
            if not url.startswith(("file://", "about:")):
                self.problems.append(f"request: {url}")

    def _read(self):
        while b"\0" not in self._buffer:
            data = os.read(self._replies, 1 << 20)
            if not data:
                raise OSError("the browser has ended")
            self._buffer += data
        message, _, self._buffer = self._buffer.partition(b"\0")
        return json.loads(message)

    def resize(self, width, height):
        self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=False,
        )

    def prefer(self, scheme):
        """Emulates the preference for ``light`` or ``dark`` pages."""
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        self.call("Emulation.setEmulatedMedia", features=features)

    def open(self, path):
        self.call("Page.navigate", url=Path(path).resolve().as_uri())
        self.evaluate(
            "new Promise(done => document.readyState === 'complete' ? done()"
            " : addEventListener('load', done))"
        )

    def evaluate(self, expression):
        """The value of an expression in the page; promises are awaited."""
        result = self.call(
            "Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True
        )
        if "exceptionDetails" in result:
            raise AssertionError(result["exceptionDetails"]["exception"]["description"])
        return result["result"].get("value")

    def click(self, x, y, count=1):
        for kind in ("mousePressed", "mouseReleased"):
            self.call(
                "Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=count
            )

    def move(self, x, y):
        self.call("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)

    def type(self, text):
        self.call("Input.insertText", text=text)

    def press(self, key, code=0):
        for kind in ("keyDown", "keyUp"):
            self.call("Input.dispatchKeyEvent", type=kind, key=key, windowsVirtualKeyCode=code)

    def screenshot(self, path):
        Path(path).write_bytes(base64.b64decode(self.call("Page.captureScreenshot")["data"]))
