"""Opens HTML reports in headless Chromium and says what is wrong with them; by hand, CI does without a browser.

    python tools/check_page.py report.html [more.html ...] --out FOLDER [--chromium chromium]

Each page is opened 1200 and 400 pixels wide, light and dark, and a screenshot of each is left in FOLDER. A fault is: an
exception or an error in the console, a request to anything but the file itself, a page wider than its window, a page
that takes longer than two seconds to load, an image without a name, and a link, summary or scrollable table that the
Tab key does not reach. The exit code is the number of faults, at most 100.
"""

from __future__ import annotations

import argparse
import base64
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

LOAD_SECONDS = 2.0
TABS = 400
NAMELESS = """
[...document.querySelectorAll('svg, img')].filter(e => !(e.getAttribute('alt') || e.getAttribute('aria-label') ||
  (e.getAttribute('aria-labelledby') || '').split(' ').some(i => i && document.getElementById(i)?.textContent.trim())))
  .length
"""
WANTED = "document.querySelectorAll('a[href], summary, [tabindex=\"0\"]').length"
HIDDEN = """
[...document.querySelectorAll('a[href], summary, [tabindex="0"]')].filter(e => !e.checkVisibility()).length
"""
REACH = "(() => { const e = document.activeElement; if (!e || e === document.body) return -1;"
REACH += " return [...document.querySelectorAll('*')].indexOf(e); })()"
LOADED = (
    "(() => { const n = performance.getEntriesByType('navigation')[0]; return n.loadEventEnd / 1000; })()"
)
WIDER = "document.documentElement.scrollWidth - document.documentElement.clientWidth"


class Browser:
    """One page of a headless Chromium, spoken to through its pipe (Chrome DevTools Protocol)."""

    def __init__(self, chromium: str, profile: str) -> None:
        to_browser, from_browser = os.pipe(), os.pipe()
        flags = [
            "--headless=new",
            "--no-sandbox",
            "--disable-gpu",
            "--remote-debugging-pipe",
            "--no-first-run",
        ]
        command = " ".join([chromium, *flags, f"--user-data-dir={profile}", "about:blank"])
        redirected = f"exec {command} 3<&{to_browser[0]} 4>&{from_browser[1]}"
        self.process = subprocess.Popen(
            ["bash", "-c", redirected], pass_fds=(to_browser[0], from_browser[1]), stderr=subprocess.DEVNULL
        )
        os.close(to_browser[0])
        os.close(from_browser[1])
        self.write, self.read = to_browser[1], os.fdopen(from_browser[0], "rb", buffering=0)
        self.events: list[dict[str, Any]] = []
        self.rest, self.number, self.session = b"", 0, ""
        target = self.ask("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.ask("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.ask(f"{domain}.enable")

    def ask(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Send a command and wait for its answer; events that come before it are kept."""
        self.number += 1
        message: dict[str, Any] = {"id": self.number, "method": method, "params": parameters}
        message |= {"sessionId": self.session} if self.session else {}
        os.write(self.write, json.dumps(message).encode() + b"\0")
        while True:
            told = self.next()
            if told.get("id") == self.number:
                if "error" in told:
                    raise RuntimeError(f"{method}: {told['error']}")
                return dict(told["result"])
            self.events.append(told)

    def next(self) -> dict[str, Any]:
        """The next message."""
        while b"\0" not in self.rest:
            chunk = self.read.read(1 << 20)
            if not chunk:
                raise RuntimeError("the browser has ended")
            self.rest += chunk
        one, _, self.rest = self.rest.partition(b"\0")
        return dict(json.loads(one))

    def value(self, expression: str) -> Any:
        """What an expression gives in the page."""
        return self.ask("Runtime.evaluate", expression=expression, returnByValue=True)["result"].get("value")

    def close(self) -> None:
        """End it."""
        self.process.terminate()
        self.process.wait(10)


def check(browser: Browser, page: Path, out: Path) -> list[str]:
    """The faults of one page."""
    faults = []
    address = page.resolve().as_uri()
    for width, scheme in ((1200, "light"), (1200, "dark"), (400, "light"), (400, "dark")):
        name = f"{page.parent.name}-{page.stem}-{width}-{scheme}"
        browser.events.clear()
        media = [{"name": "prefers-color-scheme", "value": scheme}]
        browser.ask("Emulation.setEmulatedMedia", features=media)
        browser.ask(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=900,
            deviceScaleFactor=1,
            mobile=width < 500,
        )
        began = time.monotonic()
        browser.ask("Page.navigate", url=address)
        while not any(event.get("method") == "Page.loadEventFired" for event in browser.events):
            browser.events.append(browser.next())
        wall = time.monotonic() - began
        time.sleep(0.2)
        seconds = browser.value(LOADED) or wall
        if max(seconds, wall) > LOAD_SECONDS:
            faults.append(f"{name}: {max(seconds, wall):.2f} s to load")
        if (wider := browser.value(WIDER)) > 0:
            faults.append(f"{name}: {wider} pixels wider than the window")
        if nameless := browser.value(NAMELESS):
            faults.append(f"{name}: {nameless} images without a name")
        faults += [f"{name}: {text}" for text in told(browser.events, address)]
        shot = browser.ask("Page.captureScreenshot", captureBeyondViewport=True, clip=clip(browser, width))
        (out / f"{name}.png").write_bytes(base64.b64decode(shot["data"]))
        print(f"{name}: loaded in {seconds:.2f} s ({wall:.2f} s wall), {page.stat().st_size} bytes")
    reached, wanted = tab_through(browser), browser.value(WANTED) - browser.value(HIDDEN)
    if reached < min(wanted, TABS):
        faults.append(f"{page}: the Tab key reaches {reached} of {wanted} elements")
    print(f"{page}: the Tab key reaches {reached} of {wanted} elements")
    return faults


def clip(browser: Browser, width: int) -> dict[str, Any]:
    """The whole page, at most 6000 pixels high."""
    height = min(6000, int(browser.value("document.documentElement.scrollHeight")))
    return {"x": 0, "y": 0, "width": width, "height": height, "scale": 1}


def told(events: list[dict[str, Any]], address: str) -> list[str]:
    """Errors and requests among the events."""
    faults = []
    for event in events:
        method, given = event.get("method"), event.get("params", {})
        if method == "Runtime.exceptionThrown":
            faults.append(f"exception {given['exceptionDetails'].get('text')}")
        elif method == "Log.entryAdded" and given["entry"]["level"] == "error":
            faults.append(f"console: {given['entry']['text']}")
        elif method == "Network.requestWillBeSent" and given["request"]["url"] != address:
            faults.append(f"a request to {given['request']['url'][:100]}")
    return faults


def tab_through(browser: Browser) -> int:
    """How many elements the Tab key gives the focus to."""
    seen = set()
    for _ in range(TABS):
        for kind in ("keyDown", "keyUp"):
            browser.ask("Input.dispatchKeyEvent", type=kind, key="Tab", code="Tab", windowsVirtualKeyCode=9)
        found = browser.value(REACH)
        if found in seen:
            break
        if found >= 0:
            seen.add(found)
    return len(seen)


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("pages", nargs="+", type=Path)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--chromium", default="chromium")
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)
    faults = []
    with tempfile.TemporaryDirectory() as profile:
        browser = Browser(arguments.chromium, profile)
        try:
            for page in arguments.pages:
                faults += check(browser, page, arguments.out)
        finally:
            browser.close()
            time.sleep(0.5)
    for fault in faults:
        print(f"FAULT {fault}")
    print(f"{len(faults)} faults")
    return min(len(faults), 100)


if __name__ == "__main__":
    sys.exit(main())
