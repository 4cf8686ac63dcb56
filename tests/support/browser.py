"""Chromium without a window, driven through a pipe with its DevTools protocol."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

PROGRAM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
_ALONE = ("--disable-quic", "--disable-background-networking", "--disable-component-update", "--disable-sync")
_QUIET = ("--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--hide-scrollbars", *_ALONE)
_ON_3_AND_4 = """\
import os, sys
for end, fd in [(3, os.dup(int(sys.argv[1]))), (4, os.dup(int(sys.argv[2])))]:
    os.dup2(fd, end)
    os.set_inheritable(end, True)
os.execv(sys.argv[3], sys.argv[3:])
"""
"""A program that gives another one these descriptors: there, the browser reads commands and writes answers."""


class Browser:
    """One page. `errors` are what its console and its loader reported."""

    def __init__(self, write: int, read: int) -> None:
        self._write, self._read, self._rest = write, read, b""
        self._number, self._session = 0, ""
        self.errors: list[str] = []
        target = self._send("Target.createTarget", url="about:blank")["targetId"]
        self._session = self._send("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log"):
            self._send(f"{domain}.enable")

    def open(self, path: Path, *, width: int = 1200, height: int = 900) -> None:
        """Load a file and wait for it."""
        self._send("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        scheme = {"name": "prefers-color-scheme", "value": "light"}
        self._send("Emulation.setEmulatedMedia", features=[scheme])
        self._send("Page.navigate", url=path.as_uri())
        while self._message().get("method") != "Page.loadEventFired":
            pass

    def press(self, *keys: str) -> None:
        for key in keys:
            text = {"text": key} if len(key) == 1 else {}
            self._send("Input.dispatchKeyEvent", type="keyDown", key=key, **text)
            self._send("Input.dispatchKeyEvent", type="keyUp", key=key)

    def value(self, expression: str) -> Any:
        """Return the value of an expression of JavaScript in the page."""
        answer = self._send("Runtime.evaluate", expression=expression, returnByValue=True)
        assert "exceptionDetails" not in answer, answer
        return answer["result"].get("value")

    def _send(self, method: str, **parameters: Any) -> Any:
        self._number += 1
        message: dict[str, Any] = {"id": self._number, "method": method, "params": parameters}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._write, json.dumps(message).encode() + b"\0")
        number = self._number
        while (answer := self._message()).get("id") != number:
            pass
        assert "error" not in answer, (method, answer)
        return answer["result"]

    def _message(self) -> Mapping[str, Any]:
        while b"\0" not in self._rest:
            piece = os.read(self._read, 1 << 16)
            assert piece, "the browser has ended"
            self._rest += piece
        line, self._rest = self._rest.split(b"\0", 1)
        message: dict[str, Any] = json.loads(line)
        if message.get("method") in ("Runtime.exceptionThrown", "Log.entryAdded"):
            self.errors.append(json.dumps(message["params"]))
        elif message.get("method") == "Runtime.consoleAPICalled" and message["params"]["type"] == "error":
            self.errors.append(json.dumps(message["params"]["args"]))
        return message


@contextlib.contextmanager
def started(folder: Path) -> Iterator[Browser]:
    """A browser with an empty profile in a folder."""
    assert PROGRAM is not None
    commands, write = os.pipe()
    read, answers = os.pipe()

    program = [PROGRAM, *_QUIET, "--remote-debugging-pipe", f"--user-data-dir={folder}", "about:blank"]
    process = subprocess.Popen(
        [sys.executable, "-c", _ON_3_AND_4, str(commands), str(answers), *program],
        pass_fds=(commands, answers),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    for end in (commands, answers):
        os.close(end)
    try:
        yield Browser(write, read)
    finally:
        process.kill()
        process.wait()
        for end in (write, read):
            os.close(end)
