"""Plain checklists and the plan files of Claude Code: Markdown with boxes, or with numbered steps under a heading."""

from __future__ import annotations

import functools
import hashlib
import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace

from idumb import lazy_pattern
from idumb.domain.plans.imported import ORDER, SourcePlan, SourceTask
from idumb.markdown.importers import boxes

KIND = "checklist"
_WORDS = lazy_pattern.compile(r"\w+")
_LONGEST_ID = 48
_STEP = lazy_pattern.compile(
    r"^(?:(?P<level>#{2,4})[ \t]+(?:(?:Step|Task|Phase)[ \t]+)?(?P<id>\d+(?:\.\d+)*)[.):]?|(?P<item>\d+)[.)])"
    r"[ \t]+(?P<title>\S.*)$"
)
_HEADED_STEP = lazy_pattern.compile(r"\n##{1,3}[ \t]+(?:(?:Step|Task|Phase)[ \t]+)?\d+[.):]")
_ITEM = lazy_pattern.compile(r"\n\d+[.)][ \t]")
_MARKED = lazy_pattern.compile(r"\n(?=[ \t]*(?:`{3}|~{3})|#{1,6}[ \t]|\d+[.)][ \t])")
_HEADING = lazy_pattern.compile(r"#{1,6}[ \t]+(.*)")
_STEPS = lazy_pattern.compile(r"(?:implementation|steps|tasks|plan|todo|to do|changes)", re.IGNORECASE)


def matches(_path: str, text: str) -> bool:
    return bool(boxes.read(text).boxes) or len(_steps(text)) > 1


def read(path: str, text: str, _sibling: Callable[[str], str | None]) -> SourcePlan:
    """Read top-level boxes as tasks; without boxes, numbered steps. Each task waits for the one before it."""
    checklist = boxes.read(text)
    top = _top(checklist)
    rows = [
        (id, box.text, "\n".join(filter(None, (" / ".join(box.headings[1:]), *box.below))), box.done)
        for id, box in zip(_ids(top), top, strict=True)
    ] or [(id, title, about, False) for id, (_, title, about) in zip(_step_ids(text), _steps(text), strict=True)]
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


def _step_ids(text: str) -> list[str]:
    """Return the numbers of the steps; of equal ones, the later ones get their place too."""
    counts: Counter[str] = Counter()
    ids: list[str] = []
    for number, (id, _, _) in enumerate(_steps(text), 1):
        counts[id] += 1
        ids.append(id if counts[id] == 1 else f"{id}-{number}")
    return ids


def _slug(text: str) -> str:
    """Return the words of a text, joined by `-`; a long text is cut and gets a digest."""
    whole = "-".join(_WORDS.findall(text.casefold()))
    if whole and len(whole) <= _LONGEST_ID:
        return whole
    digest = hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:8]
    return f"{whole[: _LONGEST_ID - 9].rstrip('-')}-{digest}".lstrip("-")


# Recognizing the format reads the steps, and so does the format.
@functools.lru_cache(maxsize=1)
def _steps(text: str) -> tuple[tuple[str, str, str], ...]:
    """Return (id, title, text) of numbered headings, or of the numbered items of a section for steps."""
    by_heading = _HEADED_STEP.search("\n" + text) is not None
    if not by_heading and not _ITEM.search("\n" + text):
        return ()
    found: list[tuple[str, str, list[str]]] = []
    fence, inside, level = "", False, 0  # `inside` the text of a step, or a section for steps
    for _, between, line in boxes.marked_lines(text, _MARKED):
        if between is not None and found and inside:
            found[-1][2].extend(map(str.rstrip, between.split("\n")))
        if line is None:
            break
        mark = boxes.FENCE.match(line)
        if mark:
            fence = "" if fence else mark[1]
        plain = "" if fence or mark else line.rstrip()
        step, heading = _STEP.match(plain), _HEADING.match(plain)
        if step and (step["level"] if by_heading else inside and step["item"]):
            found.append((step["id"] or step["item"], step["title"].replace("**", "").strip("* "), []))
            inside, level = True, len(step["level"] or "")
        elif heading and not (by_heading and inside and line.startswith("#" * (level + 1))):
            inside = not by_heading and _STEPS.search(heading[1]) is not None
            if found and found[-1][2] and not by_heading:
                found[-1][2].append("")
        elif found and inside:
            found[-1][2].append(line.rstrip())
    return tuple((id, title, "\n".join(lines).strip("\n")) for id, title, lines in found)
