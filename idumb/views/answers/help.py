"""Output of `help`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def shown(data: Mapping[str, Any]) -> str:
    if "text" in data:
        return str(data["text"])
    width = max(len(row["topic"]) for row in data["topics"])
    lines = [f"  {row['topic']:<{width}}  {row['title']}" for row in data["topics"]]
    return "\n".join(["Topics:", *lines, "", "idumb help TOPIC shows one; idumb COMMAND --help shows the options.", ""])
