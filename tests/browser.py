"""A real browser for tests of pages: Chromium over its debugging pipe, without further packages."""

from __future__ import annotations

import base64
import json
import os
import select
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

NEEDED = "needs chromium"
CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser"))), None)
needs_browser = pytest.mark.skipif(CHROMIUM is None, reason=NEEDED)
"""Such tests are slow, too (tests/conftest.py)."""
SECONDS = 30.0
KEYS = {"Escape": 27, "Enter": 13, "ArrowLeft": 37, "ArrowUp": 38, "ArrowRight": 39}
TOO_WIDE = """((width) => {
  const scrolls = (one) => one !== document.body && one !== document.documentElement
    && ["auto", "scroll"].includes(getComputedStyle(one).overflowX);
  const inside = (one) => one && (scrolls(one) || inside(one.parentElement));
  const reach = (one) => one.getBoundingClientRect().right - width;
  return [...document.body.querySelectorAll("*")]
    .filter((one) => one.checkVisibility() && reach(one) > 1 && !inside(one.parentElement))
    .map((one) => `${one.outerHTML.slice(0, 120)}: ${Math.round(reach(one))} pixels`).slice(0, 5);
})"""


class Tab:
    """One page. ``run`` gives the value of an expression; keys and the mouse are real events."""

    def __init__(self, write: int, read: int) -> None:
        self._write, self._read, self._held, self._number = write, read, b"", 0
        self._session = ""
        self.errors: list[str] = []
        target = self.ask("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.ask("Target.attachToTarget", targetId=target, flatten=True)[
            "sessionId"
        ]
        for domain in ("Page", "Runtime", "Log"):
            self.ask(f"{domain}.enable")

    def ask(self, method: str, **options: Any) -> dict[str, Any]:
        self._number += 1
        message: dict[str, Any] = {"id": self._number, "method": method, "params": options}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._write, json.dumps(message).encode() + b"\0")
        while (answer := self._next()).get("id") != self._number:
            self._note(answer.get("method", ""), answer.get("params", {}))
        if "error" in answer:
            raise RuntimeError(f"{method}: {answer['error']}")
        found: dict[str, Any] = answer["result"]
        return found

    def _note(self, event: str, about: dict[str, Any]) -> None:
        """What a page throws, writes to the console as an error, or fails to load."""
        wrong = (
            event == "Runtime.exceptionThrown"
            or (event == "Runtime.consoleAPICalled" and about["type"] == "error")
            or (event == "Log.entryAdded" and about["entry"]["level"] == "error")
        )
        if wrong:
            self.errors.append(json.dumps(about)[:2000])

    def _next(self) -> dict[str, Any]:
        until = time.monotonic() + SECONDS
        while b"\0" not in self._held:
            ready, _, _ = select.select([self._read], [], [], max(0.0, until - time.monotonic()))
            part = os.read(self._read, 1 << 20) if ready else b""
            if not part and not self._session:
                pytest.skip("the browser did not start in time")
            assert part, "the browser does not answer any more"
            self._held += part
        text, _, self._held = self._held.partition(b"\0")
        message: dict[str, Any] = json.loads(text)
        return message

    def open(self, path: Path, width: int = 1400, height: int = 900) -> None:
        self.size(width, height)
        self.ask("Page.navigate", url=path.resolve().as_uri())
        self.wait('document.readyState === "complete" && location.protocol === "file:"')
        # twice a frame: what comes near the screen is drawn by then
        self.run("new Promise(d => requestAnimationFrame(() => requestAnimationFrame(d)))")

    def size(self, width: int, height: int) -> None:
        self._width = width
        self.ask("Emulation.setDeviceMetricsOverride", width=width, height=height,
                 deviceScaleFactor=1, mobile=width < 600)  # fmt: skip

    def run(self, expression: str) -> Any:
        found = self.ask(
            "Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True
        )
        if "exceptionDetails" in found:
            raise RuntimeError(json.dumps(found["exceptionDetails"])[:2000])
        return found["result"].get("value")

    def wait(self, expression: str) -> None:
        until = time.monotonic() + SECONDS
        while not self._holds(expression):
            assert time.monotonic() < until, expression
            time.sleep(0.02)

    def _holds(self, expression: str) -> bool:
        try:
            return bool(self.run(expression))
        except RuntimeError as error:
            # the page is just being left for another
            if "navigated" in str(error) or "context was destroyed" in str(error):
                return False
            raise

    def too_wide(self) -> list[str]:
        """Elements that reach out of the window to the right, but for what scrolls in its place."""
        found: list[str] = self.run(f"{TOO_WIDE}({self._width})")
        return found

    def press(self, *keys: str) -> None:
        for key in keys:
            code = KEYS.get(key, ord(key[0].upper()))
            about = {"key": key, "windowsVirtualKeyCode": code}
            text = {"text": key} if len(key) == 1 else {"text": "\r"} if key == "Enter" else {}
            self.ask("Input.dispatchKeyEvent", type="keyDown", **about, **text)
            self.ask("Input.dispatchKeyEvent", type="keyUp", **about)

    def mouse(self, *points: tuple[float, float]) -> None:
        """Press at the first point, move over the others, let go at the last."""
        kinds = ["mousePressed", *["mouseMoved"] * (len(points) - 1), "mouseReleased"]
        for kind, (x, y) in zip(kinds, [*points, points[-1]], strict=True):
            self.ask("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", buttons=1,
                     clickCount=1)  # fmt: skip

    def click(self, selector: str) -> None:
        found = json.dumps(selector)
        self.run(f"document.querySelector({found}).scrollIntoView({{block: 'nearest'}})")
        box = self.run(f"document.querySelector({found}).getBoundingClientRect().toJSON()")
        self.mouse((box["x"] + box["width"] / 2, box["y"] + box["height"] / 2))

    def screenshot(self, path: Path) -> None:
        path.write_bytes(base64.b64decode(self.ask("Page.captureScreenshot")["data"]))


@contextmanager
def browser(folder: Path) -> Iterator[Tab]:
    """A fresh one, with its files in ``folder``; downloads go to ``folder/downloads``."""
    assert CHROMIUM is not None
    there, ours = os.pipe(), os.pipe()
    flags = "--headless=new --no-sandbox --disable-gpu --no-first-run --remote-debugging-pipe"
    command = [CHROMIUM, *flags.split(), f"--user-data-dir={folder / 'profile'}"]
    # the browser reads messages from stream 3 and answers on stream 4
    shell = ["bash", "-c", f'exec "$@" 3<&{there[0]} 4>&{ours[1]}', "bash", *command]
    with open(folder / "browser.log", "wb") as log:
        process = subprocess.Popen(
            shell, pass_fds=(there[0], ours[1]), stdout=log, stderr=log, stdin=subprocess.DEVNULL
        )
    os.close(there[0])
    os.close(ours[1])
    try:
        tab = Tab(there[1], ours[0])
        tab.ask("Page.setDownloadBehavior", behavior="allow",
                downloadPath=str(folder / "downloads"))  # fmt: skip
        yield tab
    finally:
        process.kill()
        process.wait()
        os.close(there[1])
        os.close(ours[0])
