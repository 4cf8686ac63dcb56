"""Words for `idumb backup` and `idumb archive`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from idumb.views import markup


def backup(data: Mapping[str, Any]) -> str:
    where = markup.one_line(data["path"])
    if not data["verified"]:
        return f"{where} is intact up to event {data['events']} only.\n"
    ours = "" if data["of_this_log"] else " It is not of this repository's log.\n"
    return f"{where}: {data['events']} events, every hash checked, head {data['head'][:12]}.\n{ours}"


def archive(data: Mapping[str, Any]) -> str:
    if not data["moved"]:
        return "Nothing to move: every event is needed by a run that can still go on.\n"
    files = ", ".join(segment["name"] for segment in data["segments"])
    return f"{data['moved']} events moved; events 1 to {data['archived']} are in {files}.\n"
