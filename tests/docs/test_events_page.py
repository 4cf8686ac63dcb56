"""`docs/events.md` and `docs/schemas/event.json` say what the program does (R-LOG-1)."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from idumb.domain.runs.event import ALIASES, KINDS
from tests.adapters.store.opened import OpenedLog
from tests.meta import source

PAGE = (source.ROOT / "docs/events.md").read_text(encoding="utf-8")
WRITES = ("event", "journal.append")
SCHEMA: dict[str, Any] = json.loads((source.ROOT / "docs/schemas/event.json").read_text(encoding="utf-8"))
VALIDATOR = jsonschema.Draft202012Validator(SCHEMA)


def documented() -> dict[str, set[str]]:
    """Kind to the names of its payload's fields, with those that all kinds can have."""
    shared = explained(PAGE.partition("## Fields of many kinds")[2])
    sections = (section.partition("\n") for section in re.split(r"^### ", PAGE, flags=re.MULTILINE)[1:])
    return {heading.strip("`"): explained(rest) | shared for heading, _, rest in sections}


def explained(section: str) -> set[str]:
    """The code before each colon."""
    return set(re.findall(r"`(\w+)`(?=(?:, `\w+`)*:)", section.partition("\n##")[0]))


def written() -> Iterator[tuple[str, str, str]]:
    """(place, kind, field) of every event that the use cases write with its fields named on the spot."""
    for place in source.python_files("idumb/app"):
        for node in ast.walk(source.parsed(place)) if "journal" in source.text(place) else ():
            if not (isinstance(node, ast.Call) and node.args and source.dotted(node.func).endswith(WRITES)):
                continue
            kind = node.args[0]
            if isinstance(kind, ast.Constant) and kind.value in KINDS:
                for keyword in node.keywords:
                    if keyword.arg:
                        yield f"{source.name_of(place)}:{node.lineno}", str(kind.value), keyword.arg


def test_the_page_has_exactly_one_section_per_event_kind() -> None:
    assert set(documented()) == set(KINDS)


def test_every_written_field_is_explained() -> None:
    pages = documented()
    written_fields = list(written())
    assert len(written_fields) > 40
    assert [(place, kind, field) for place, kind, field in written_fields if field not in pages[kind]] == []


def test_names_of_other_engines_map_to_kinds_of_idumb() -> None:
    """The table has the kinds and required payload fields of the program."""
    table = PAGE.split("## Names from other workflow engines")[1]
    rows = [line.split("|")[1:3] for line in table.splitlines() if line.startswith("| `")]
    page_names = {names.strip(" `"): re.findall(r"`([\w.]+)`", right) for names, right in rows}
    ours = {
        name: [word for one in kinds for word in (one.kind, *([one.name] if one.name else []), *one.values)]
        for name, kinds in ALIASES.items()
    }
    assert page_names == ours
    assert {one.kind for kinds in ALIASES.values() for one in kinds} <= set(KINDS)


def test_the_schema_knows_every_kind() -> None:
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    assert SCHEMA["properties"]["kind"]["enum"] == list(KINDS)


@pytest.fixture
def rows(tmp_path: Path) -> list[dict[str, Any]]:
    """Events as a log of the present schema holds them, through JSON as `idumb log --json` prints them."""
    log = OpenedLog(tmp_path)
    log.fill(3)
    return [json.loads(json.dumps(event.as_dict())) for event in log.log.events()]


def test_the_schema_accepts_real_events_and_rejects_broken_ones(rows: list[dict[str, Any]]) -> None:
    assert len(rows) > 2
    assert [row for row in rows if rejected(row)] == []
    assert [mistake for mistake, fields in BROKEN.items() if not rejected({**rows[2], **fields})] == []


BROKEN: Mapping[str, Mapping[str, Any]] = {
    "no place": {"seq": 0},
    "an unknown kind": {"kind": "task.finished"},
    "a time without a zone": {"at": "2026-01-02T03:04:05.000000"},
    "no chain": {"hash": "0"},
    "a payload that replay could not read": {"kind": "checkpoint.recorded"},
}


def rejected(row: Mapping[str, Any]) -> bool:
    return next(VALIDATOR.iter_errors(row), None) is not None
