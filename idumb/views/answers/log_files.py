"""Output of `backup` and `archive`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from idumb.views import markup


def backup(data: Mapping[str, Any]) -> str:
    where = markup.one_line(data["path"])
    if not data["verified"]:
        return f"{where} is intact only up to event {data['events']}.\n"
    ours = "" if data["of_this_log"] else " It is not a backup of this repository's log.\n"
    return f"{where}: {data['events']} events, every hash checked, head {data['head'][:12]}.\n{ours}"


def archive(data: Mapping[str, Any]) -> str:
    if not data["moved"]:
        return "Nothing to move: runs that can continue need every event.\n"
    files = ", ".join(segment["name"] for segment in data["segments"])
    return f"Moved {data['moved']} events; events 1 to {data['archived']} are in {files}.\n"
