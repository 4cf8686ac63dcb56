"""Which fields of an event's payload are redacted (R-LOG-3)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from idumb.domain.runs.event import NewEvent
from idumb.store.event_log import SqliteEventLog
from idumb.store.ownership import FileOwnership
from idumb.system.redaction import Redactor
from tests.support.cases import every
from tests.support.fixed_clock import FixedClock


@every("value", ["secret", "T1-01.secret.1", "evidence", "failed-x9", "model-x9"])
def test_identifiers_stay_and_free_text_is_redacted(tmp_path: Path, value: str) -> None:
    """R-LOG-3: at every depth; names of fields and of tasks stay too."""
    log = SqliteEventLog(str(tmp_path), "main", FixedClock(), redactor=lambda: Redactor({"API_KEY": value}))
    owner = FileOwnership(log.database, "main", FixedClock())
    exact: dict[str, Any] = {
        "id": f"T1-01.{value}.1",
        "decisions": [f"T1-01.{value}.1"],
        "choices": [{"id": value}],
        "evidence": {"T1-01": {"result": value}},
        "key": f"command {value} none",
    }
    fence = owner.acquire("idumb test")
    free = {"what": f"it says {value}", "left": {f"out/{value}.txt": "x"}, "argv": [value]}
    log.append([NewEvent("decision.asked", {**exact, **free}, run="r")], operation="o", fence=fence)
    (event,) = log.events()
    assert {name: event.payload[name] for name in exact} == exact
    assert value not in str([event.payload[name] for name in free])
