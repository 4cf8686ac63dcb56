"""Sends notices from a process of its own, so that no run waits for a slow receiver.

python -m idumb.system.notices < MESSAGE
"""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
import time
from collections.abc import Mapping
from typing import Any

from idumb.system import process_end

_PAUSES = (1, 5, 25)
"""Seconds before each further try of a webhook."""
_SECONDS = 10
"""How long a receiver may take."""
_OSASCRIPT = ("on run argv", 'display notification (item 1 of argv) with title "idumb"', "end run")


class _Sending(subprocess.Popen[bytes]):
    """The process that sends a notice. It may outlive this one, so nothing warns of it then."""

    def __del__(self) -> None: ...


_sending: list[_Sending] = []
"""Those that were not seen to have ended."""


def send(notice: Mapping[str, str], ways: Mapping[str, Any]) -> None:
    """Start the process that sends a notice. Nothing is in its arguments: others can read those."""
    message = json.dumps({"notice": dict(notice), "ways": dict(ways)}).encode()
    command = [sys.executable, "-P", "-m", __name__]  # -P: never import a folder `idumb` of the repository
    quiet = subprocess.DEVNULL
    with process_end.spawning:  # it is no process that a builder left behind
        process = _Sending(command, stdin=subprocess.PIPE, stdout=quiet, stderr=quiet, start_new_session=True)
        process_end.running[f"notice {process.pid}"] = process.pid
    _sending[:] = [*(one for one in _sending if one.poll() is None), process]
    if process.stdin is not None:
        process.stdin.write(message)
        process.stdin.close()


def main() -> None:
    message = json.loads(sys.stdin.buffer.read())
    notice, ways = message["notice"], message["ways"]
    body = json.dumps(notice).encode()
    if ways["command"]:
        _run(ways["command"], body)
    if ways["desktop"]:
        _run(_desktop(notice["words"]), b"")
    if ways["webhook"]:
        _post(ways["webhook"], body)


def _desktop(words: str) -> list[str]:
    if sys.platform == "darwin":
        return ["osascript", *(part for line in _OSASCRIPT for part in ("-e", line)), words]
    return ["notify-send", "--app-name=idumb", "idumb", words]


def _run(command: list[str], body: bytes) -> None:
    """Run a program with the notice on its standard input. A missing one changes nothing."""
    with contextlib.suppress(OSError, subprocess.TimeoutExpired):
        subprocess.run(command, input=body, timeout=_SECONDS, check=False, capture_output=True)


def _post(url: str, body: bytes) -> None:
    from urllib import request

    for pause in (*_PAUSES, None):
        asked = request.Request(url, body, {"Content-Type": "application/json"})  # noqa: S310 - the user's own address
        with contextlib.suppress(OSError), request.urlopen(asked, timeout=_SECONDS):  # noqa: S310
            return
        if pause is not None:
            time.sleep(pause)


if __name__ == "__main__":
    main()
