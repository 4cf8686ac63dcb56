"""R-PLAN-2, R-PLAN-5: text that looks like a task is read as one or an error; prose stays prose."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator

from idumb.markdown.plans import plan_parser
from tests.format import golden
from tests.support.cases import every
from tests.support.seed import commit_seed

WHOLE = ("headings", "checklist", "fences", "list")
"""Plans in each notation: the cases `whole-…`. Their tasks follow the same head."""
HEAD, _TASKS, _ = golden.data("whole-headings").decode().partition("## Tasks\n\n")
PLANS = {name: golden.data(f"whole-{name}").decode().removeprefix(HEAD) for name in WHOLE}
PLANS["headings alone"] = PLANS["headings"].removeprefix(_TASKS)

_HEADING = re.compile(r"(#+) (?:(T1-\d+)(: ))?(.*)")
_ITEM = re.compile(r"(\s*)([-*] )(\[ \] )?((?:id: )?)(T1-\d+)?(.*)")
_FENCE = re.compile(r"(```|~~~)(.*)")
_OTHER_IDS = (
    "t1-01", "T2-01", "T1-1", "T-01", "1-01", "T1", "X1-01", "T1-01aa", "T1_01", "T1–01", "Tl-01", "T1-O1", "Т1-01",
)  # fmt: skip


def changes(line: str) -> Iterator[str | None]:
    """The line without its heading signs, markers or ids, and with others; None deletes it."""
    if heading := _HEADING.fullmatch(line):
        signs, id, colon, title = heading.groups()
        whole = f"{id}{colon}{title}" if id else title
        yield from (None, whole, f"{signs}{whole}", f"{signs[1:]} {whole}", f"#{line}", f"####{line}", f" {line}")
        yield from (f"    {line}", f"> {line}", f"- {line}", f"1. {line}", f"\\{line}", f"**{whole}**", f"<b>{line}")
        yield from (f"{signs} ", f"{whole}\n--------", f"{whole}\n========")
        if id:
            yield from (f"{signs} {title}", f"{signs} {id}", f"{signs} {id} {title}", f"{signs} {id};{title}")
            yield from (f"{signs} {other}: {title}" for other in (*_OTHER_IDS, "Step 1", "1.", "Task", f"[{id}]"))
    elif item := _ITEM.fullmatch(line):
        indent, marker, box, key, id, rest = item.groups()
        box, text = box or "", f"{key}{id or ''}{rest}"
        yield from (None, f"{indent}{box}{text}", f"{indent}{text}", f"{indent}{marker}{text}", f" {line}")
        yield from (f"{indent}{sign}{box}{text}" for sign in (marker.strip(), "1. ", "* ", "+ ", "• ", "– ", ""))
        yield from (f"{indent}{marker}{other}{text}" for other in ("[] ", "[  ] ", "[ ]", "[-] ", "( ) ", "☐ "))
        yield from (f"    {line}", f"> {line}")
        if id and (box or key):
            yield from (f"{indent}{marker}{box}{key}{other}{rest}" for other in ("", *_OTHER_IDS))
            keys = ("Id: ", "ID: ", "id:", "id : ", '"id": ', "task: ", "name: ") if key else ()
            yield from (f"{indent}{marker}{box}{other}{id}{rest}" for other in keys)
    elif fence := _FENCE.fullmatch(line):
        mark, info = fence.groups()
        yield from (None, mark[1:] + info, mark[0] + line, f" {line}", f"    {line}", f"- {line}", f"> {line}", mark)
        near = ("yaml", "yml", "YAML", "yaml tasks", "yml task", "json", "task", "yaml: task", "yaml  task", "yamltask")
        yield from (mark + other for other in near if info)
    elif line.startswith("id: "):
        yield from (None, "id:", "ID: T1-01", "name: T1-01", "id : T1-01", "id:T1-01", "T1-01")
        yield from (f"id: {other}" for other in _OTHER_IDS)


def changed(text: str, only: str) -> Iterator[tuple[int, str | None, str]]:
    lines = text.split("\n")
    for number, line in enumerate(lines):
        for other in dict.fromkeys(changes(line) if line.startswith(only) else ()):
            if other != line:
                kept = lines[:number] + ([] if other is None else [other]) + lines[number + 1 :]
                yield number + 1, other, "\n".join(kept)


@every("name", PLANS)
def test_no_changed_heading_marker_or_id_loses_a_task_silently(name: str) -> None:
    """Every heading, list marker, box, fence and id, each deleted and changed in every way that people slip.

    A sixth of the changes for each commit, which successive commits take in turn.
    The plans have no human task whose heading, deleted altogether, would leave fields that the task above lacks: that
    is a legal plan of another meaning.
    """
    whole = plan_parser.parse((HEAD + PLANS[name]).encode(), "p").plan
    assert whole is not None
    tried, lost = 0, []
    every_change = changed(PLANS[name], only="#" if name == "headings alone" else "")
    for line, other, text in itertools.islice(every_change, commit_seed() % 6, None, 6):
        result = plan_parser.parse((HEAD + text).encode(), "p")
        tried += 1
        if result.plan is not None and len(result.plan.tasks) < len(whole.tasks):
            lost.append((line, other))
    assert tried > 15
    assert not lost
