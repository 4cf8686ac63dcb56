"""The anchor: a small file beside the database that says how far the event log had come.

A database that is gone or older than its anchor is refused and never replaced by an empty one. The anchor is
written when the database is made and when an owner lets go, so it may lag behind, but never runs ahead.
"""

from __future__ import annotations

import json
import os
from typing import Any

from idumb.system import atomic


def write(path: str, seq: int, head: str) -> None:
    data = json.dumps({"seq": seq, "hash": head}, sort_keys=True).encode("ascii") + b"\n"
    atomic.write(path, data, mode=0o600)


def read(path: str) -> tuple[int, str] | None:
    """(sequence number, hash); None when there is no anchor. A damaged one counts as (0, ""): it only says "made"."""
    try:
        with open(path, "rb") as stream:
            known: Any = json.loads(stream.read())
        return int(known["seq"]), str(known["hash"])
    except FileNotFoundError:
        return None
    except (ValueError, KeyError, TypeError):
        return 0, ""


def exists(path: str) -> bool:
    return os.path.exists(path)
