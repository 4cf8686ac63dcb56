"""Plain checklists and the plan files of Claude Code: Markdown with boxes, or with numbered steps under a heading."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace

from idumb.domain.plans.imported import ORDER, SourcePlan, SourceTask
from idumb.markdown.importers import boxes

KIND = "checklist"
_WORDS = re.compile(r"\w+")
_LONGEST_ID = 48
_STEP = re.compile(
    r"^(?:(?P<level>#{2,4})[ \t]+(?:(?:Step|Task|Phase)[ \t]+)?(?P<id>\d+(?:\.\d+)*)[.):]?|(?P<item>\d+)[.)])"
    r"[ \t]+(?P<title>\S.*)$"
)
_FENCE = re.compile(r"[ \t]*(`{3,}|~{3,})")
_HEADING = re.compile(r"#{1,6}[ \t]+(.*)")
_STEPS = re.compile(r"(?:implementation|steps|tasks|plan|todo|to do|changes)", re.IGNORECASE)


def matches(_path: str, text: str) -> bool:
    return bool(boxes.read(text).boxes) or len(_steps(text)) > 1


def read(path: str, text: str, _sibling: Callable[[str], str | None]) -> SourcePlan:
    """Read top-level boxes as tasks; without boxes, numbered steps. Each task waits for the one before it."""
    checklist = boxes.read(text)
    top = _top(checklist)
    rows = [
        (id, box.text, "\n".join(filter(None, (" / ".join(box.headings[1:]), *box.below))), box.done)
        for id, box in zip(_ids(top), top, strict=True)
    ] or [(id, title, about, False) for id, title, about in _steps(text)]
    tasks: list[SourceTask] = []
    for id, words, about, done in rows:
        files = boxes.paths_in(words)
        inferred = (ORDER, *(("Files: paths in the text",) if files else ()))
        before = (tasks[-1].id,) if tasks else ()
        tasks.append(SourceTask(id, words, about, done, before, files, inferred=inferred))
    title = next((name for level, name, _ in checklist.headings if level == 1), path)
    return SourcePlan(KIND, path, title, title, tuple(tasks))


def _top(checklist: boxes.Checklist) -> list[boxes.Box]:
    """Return the boxes that are in no other box; the others become text of theirs."""
    top: list[boxes.Box] = []
    for box in checklist.boxes:
        if top and box.indent > top[-1].indent and box.headings == top[-1].headings:
            top[-1].below.append(f"- {'(done) ' * box.done}{box.text}")
        else:
            top.append(replace(box, below=[*box.below]))
    return top


def _ids(top: Sequence[boxes.Box]) -> list[str]:
    """Return ids from the words of the items; an item that moves keeps its own. Equal items have that of their heading.

    Items of the same words under the same heading get numbers.
    """
    words = [_slug(box.text) for box in top]
    repeated = Counter(words)
    ids: list[str] = []
    counts: Counter[str] = Counter()
    for word, box in zip(words, top, strict=True):
        id = f"{_slug(box.headings[-1])}-{word}" if repeated[word] > 1 and box.headings else word
        counts[id] += 1
        ids.append(id if counts[id] == 1 else f"{id}-{counts[id]}")
    return ids


def _slug(text: str) -> str:
    """Return the words of a text, joined by `-`; a long text is cut and gets a digest."""
    whole = "-".join(_WORDS.findall(text.casefold()))
    if whole and len(whole) <= _LONGEST_ID:
        return whole
    return f"{whole[: _LONGEST_ID - 9]}-{hashlib.sha256(text.encode('utf-8', 'replace')).hexdigest()[:8]}".lstrip("-")


def _steps(text: str) -> list[tuple[str, str, str]]:
    """Return (id, title, text) of numbered headings, or of the numbered items of a section for steps."""
    found: list[tuple[str, str, list[str]]] = []
    fence, inside, by_heading = (
        "",
        False,
        re.search(r"\n##{1,3}[ \t]+(?:(?:Step|Task|Phase)[ \t]+)?\d+[.):]", f"\n{text}"),
    )
    for line in text.split("\n"):
        may_fence = "``" in line or "~~" in line
        may_start = line.startswith("#") or line[:1].isdigit()
        if not (found or may_fence or may_start):
            continue
        mark = _FENCE.match(line) if may_fence else None
        if mark:
            fence = "" if fence else mark[1]
        step = _STEP.match(line.rstrip()) if may_start and not (fence or mark) else None
        heading = _HEADING.match(line) if not fence and line.startswith("#") else None
        if step and (step["level"] if by_heading else inside and step["item"]):
            found.append((step["id"] or step["item"], step["title"].strip("* "), []))
        elif heading and not (step and by_heading):
            inside = _STEPS.search(heading[1]) is not None
            if by_heading and found and line.startswith("## "):
                inside = False
            if found and found[-1][2] and not by_heading:
                found[-1][2].append("")
        elif found and (by_heading or inside):
            found[-1][2].append(line.rstrip())
    unique: dict[str, tuple[str, str, str]] = {}
    for number, (id, title, lines) in enumerate(found, 1):
        key = id if id not in unique else f"{id}-{number}"
        unique[key] = (key, title, "\n".join(lines).strip("\n"))
    return list(unique.values())


def with_done(text: str, ids: Collection[str]) -> tuple[str, tuple[str, ...]]:
    """Return the text with ticked boxes, and the ids whose boxes were ticked. Numbered steps have no marks."""
    top = _top(boxes.read(text))
    chosen = [(id, box.mark) for id, box in zip(_ids(top), top, strict=True) if id in ids and not box.done]
    return boxes.tick(text, [mark for _, mark in chosen]), tuple(id for id, _ in chosen)
