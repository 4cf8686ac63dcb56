"""A task of another tool: as its author wrote it, with the texts and commands in it, and as a task of a contract.

Only text that the author marked as a command is one: a command inside a sentence may be an example or a part of it.
"""

from __future__ import annotations

import html
import itertools
import re
import textwrap
from collections.abc import Iterable, Iterator, Sequence

from msgspec import Struct, field
from msgspec.structs import replace

from idumb.domain import paths
from idumb.domain.plans import plan as plans
from idumb.domain.plans import shell
from idumb.domain.plans.plan import SOURCE_DONE, Criterion, FileClaim, Option, Task
from idumb.domain.plans.source_tasks import CHANGE, DONE, SOURCE_ID
from idumb.markdown.syntax import inline
from idumb.markdown.syntax.inline import Piece
from idumb.markdown.syntax.source import Source

_MAY_CHANGE = frozenset({"", "new", "create", "created", "edit", "edits", "modify", "modified", "update", "updated"})
_NOTHING = re.compile(r"(?:n/?a|none|no files?|nothing|-+|—)(?:$|[\s.,:;(—–-])", re.IGNORECASE)
_BULLET = re.compile(r"^(?:[-*+]|\d+[.)])\s+")
_VERB = re.compile(r"(create|modify|delete|remove|read|inspect|edit|update|new|add|test)(?: ?: ?| )", re.IGNORECASE)
# A word or two before a path in backticks, such as `Optional:` or `Create/Modify:`.
_LABEL = re.compile(r"^\(?[A-Za-z][\w/, -]{0,40}[):]? (?=`(?:[^` (]*/[^` (]*|[^` (]*\.[A-Za-z]\w{0,5})`)")
# A path in quotes, or one before notes in brackets and a remark.
_QUOTED = re.compile(r"\*{0,2}([`\"'])(?P<path>[^`\"']+)\1(?P<notes>.*)")
_BARE = re.compile(r"(?P<path>.+?)(?P<notes>(?: \([^()]*\)){0,3})(?: (?:—|–|--?|#) .*)?")
_VERBS = {"delete": "delete", "remove": "delete", "read": "read", "inspect": "read"}
_BETWEEN = re.compile(r"(?<=`)\s+(?:/|&|\+|and|or|to|→|[-=]>)\s+(?=`)")
_DELETED = re.compile(r"\( ?(?:deleted?|removed?) ?\)", re.IGNORECASE)
_NUMBER = re.compile(r"[A-Za-z]{0,6}(\d+)([a-z]?)", re.ASCII)
_ABOUT = re.compile(r"(?<=\S)\s+(?:—|–|--)\s")
_TASK_ID = re.compile(r"T[\w.]+-\d{2,9}[a-z]?")
_PLAIN = re.compile(r"[.*/]|^[A-Z][A-Za-z]*file$|^[A-Z]+$|^\w+$")
_is_protected = paths.cover(paths.ALWAYS_PROTECTED)
_KINDS = {
    **dict.fromkeys(("", "auto", "execute", "tdd"), plans.BUILD),
    **{f"checkpoint:{kind}": kind for kind in ("human-verify", "decision", "human-action")},
}


class ForeignTask(Struct):
    """One task as its author wrote it.

    - `id`: the author's id, "" if the format has none. `in_order`: after the task before it, whatever it depends on.
    - `files` None: the task does not say which files it changes.
    - `commands`: executable checks. `done`: its author ticked it.
    - `criteria` have no ids yet. Without a proof of its own, one is proven by the commands if there are any.
    """

    start: int
    end: int
    title: str
    kind: str = plans.BUILD
    id: str = ""
    description: list[str] = field(default_factory=list)
    references: list[str] = field(default_factory=list)
    files: list[Piece] | None = None
    criteria: list[Criterion] = field(default_factory=list)
    commands: list[str] = field(default_factory=list)
    depends_on: list[Piece] = field(default_factory=list)
    in_order: bool = True
    options: list[Option] = field(default_factory=list)
    estimate: int | None = None
    priority: str = "normal"
    notation: str = "heading"
    done: bool = False
    notes: list[str] = field(default_factory=list)
    spans: dict[str, tuple[int, int]] = field(default_factory=dict)


def kind_of(type: str, at: int, source: Source) -> str:
    """Return the kind of a task from the type that its author wrote; an unknown one is reported."""
    kind = _KINDS.get(type.strip().casefold())
    if kind is None:
        kind = "human-action" if type.startswith("checkpoint") else plans.BUILD
        accepted = ", ".join(filter(None, _KINDS))
        source.report("dialect.unknown-type", at, type, field="type", kind=kind, accepted=accepted)
    return kind


def tasks_of(
    drafts: Sequence[ForeignTask],
    prefix: str,
    source: Source,
    requirements: Iterable[str] = (),
    files_of_plan: Sequence[Piece] = (),
) -> tuple[Task, ...]:
    """Return the tasks in document order. `prefix` begins the ids of tasks whose own id cannot serve."""
    ids = _ids(drafts, prefix)
    by_own = {own: id for draft, id in zip(drafts, ids, strict=True) if (own := draft.id.casefold())}
    tasks: list[Task] = []
    for draft, id in zip(drafts, ids, strict=True):
        needed = dict.fromkeys([tasks[-1].id] if tasks and draft.in_order else ())
        needed |= _dependencies(draft.depends_on, id, by_own, source)
        tasks.append(_task(draft, id, tuple(needed), tuple(requirements), files_of_plan, source))
    return tuple(tasks)


def prefix(phase: str, plan: str) -> str:
    """Return how the ids of a plan's tasks begin: `T14-02` for plan 02 of phase 14; its third task is `T14-0203`."""
    numbers = []
    for piece in re.split(r"[._-]", plan):
        match = _NUMBER.fullmatch(piece)
        if match is None:
            return f"T{phase}-00"
        numbers.append(f"{match[1][-6:]:0>2}" + (f"{ord(match[2].lower()) - ord('a') + 51}" if match[2] else ""))
    return f"T{phase}-{''.join(numbers)}"


def _ids(drafts: Sequence[ForeignTask], prefix: str) -> list[str]:
    """Return the author's ids where all of them are task ids of the phase; otherwise number the tasks."""
    own = [draft.id for draft in drafts]
    pattern = re.compile(re.escape(prefix.rpartition("-")[0]) + r"-\d{2,9}[a-z]?", re.ASCII)
    if own and len(set(own)) == len(own) and all(map(pattern.fullmatch, own)):
        return own
    width = max(2, len(str(len(drafts))))
    return [f"{prefix}{number:0{width}d}" for number in range(1, len(drafts) + 1)]


def _dependencies(stated: list[Piece], task: str, by_own: dict[str, str], source: Source) -> dict[str, None]:
    found: dict[str, None] = {}
    for text, at in stated:
        known = by_own.get(text.casefold()) or (text if _TASK_ID.fullmatch(text) else None)  # of another plan
        if known is not None:
            found[known] = None
            continue
        accepted = ", ".join(list(by_own)[:6]) or "none"
        source.report("task.unknown-dependency", at, text, field="Depends on", task=task, accepted=accepted)
    return found


def _task(
    draft: ForeignTask, id: str, depends_on: tuple[str, ...], requirements: tuple[str, ...],
    files_of_plan: Sequence[Piece], source: Source,
) -> Task:  # fmt: skip
    human = draft.kind in plans.HUMAN_KINDS
    stated = draft.files if draft.files is not None or human else list(files_of_plan) or None
    criteria = tuple(_criteria(draft, source, human=human))
    unproven = not human and all(c.proof == plans.UNPROVEN for c in criteria)
    extra = {SOURCE_ID: draft.id} if draft.id and draft.id != id else {}
    return Task(
        id, draft.title, "\n\n".join(filter(None, (text.strip("\n") for text in draft.description))), draft.kind,
        requirements, depends_on, None if stated is None else _claims(stated, id, source), acceptance=criteria,
        # Nothing can prove it, so a further attempt is of no use: a person accepts the work or skips the task.
        verify=tuple(draft.commands), on_failure="ask" if unproven else None, options=tuple(draft.options),
        estimate=draft.estimate, priority=draft.priority, references="\n\n".join(filter(None, draft.references)),
        notes="\n".join(draft.notes), extra={**extra, **({SOURCE_DONE: DONE} if draft.done else {})},
        notation=draft.notation, span=source.span(draft.start, draft.end),
        spans={name: source.span(*place) for name, place in draft.spans.items()},
    )  # fmt: skip


def _criteria(draft: ForeignTask, source: Source, *, human: bool) -> Iterator[Criterion]:
    stated = draft.criteria
    if not stated and not human:
        text = "The checks of this task pass" if draft.commands else draft.title
        stated = [Criterion("", text, "", span=source.span(draft.start, draft.start))]
    usual = plans.HUMAN if human else plans.VERIFY if draft.commands else plans.UNPROVEN
    for number, each in enumerate(stated, 1):
        yield replace(each, id=f"AC-{number}", proof=each.proof or usual)


def _claims(stated: Iterable[Piece], task: str, source: Source) -> tuple[FileClaim, ...]:
    """Return the claims of paths separated by commas or lines. Unreadable ones are reported and not claimed."""
    found: dict[str, FileClaim] = {}
    for part in stated:
        for text, at in _split(part):
            claim = _claim(text, at, task, source)
            if claim is not None:
                found.setdefault(claim.path, claim)
    return tuple(found.values())


def _split(part: Piece) -> Iterator[Piece]:
    """Yield the items of each line, between commas that are in no brackets."""
    for match in re.finditer(r"[^\n]+", part.text):
        line, at = _ABOUT.split(match[0], maxsplit=1)[0], part.at + match.start()
        if _NOTHING.match(_BULLET.sub("", line.strip(), count=1)):
            continue
        line = paths.PLACE_IN_FILE.sub(lambda found: " " * len(found[0]), line)
        line = _BETWEEN.sub(lambda found: ",".ljust(len(found[0])), line)
        depth = begin = 0
        for index, char in enumerate(line + ","):
            depth += (char in "({") - (char in ")}")
            if (char == "," and depth <= 0) or index == len(line):
                yield Piece(line[begin:index], at + begin)
                begin = index + 1


def _claim(text: str, at: int, task: str, source: Source) -> FileClaim | None:
    path = " ".join(_BULLET.sub("", text.strip(), count=1).split())
    if path.startswith("<!--") or path.strip("()").casefold() in _MAY_CHANGE or _NOTHING.fullmatch(path + " "):
        return None
    verb = CHANGE
    if stated := _VERB.match(path):
        verb, path = _VERBS.get(stated[1].lower(), CHANGE), path[stated.end() :]
    path = _LABEL.sub("", path, count=1)
    quoted = _QUOTED.match(path)
    if match := quoted or _BARE.fullmatch(path):
        verb = "delete" if _DELETED.search(match["notes"]) else verb
        path = (match["path"] if quoted else match["path"].strip("*")).strip().removeprefix("./").rstrip(",;")
    why = paths.problem(path) or ("contains a space" if " " in path and not quoted else None)
    if why is None and path.startswith(".") and _is_protected(path):
        why = "belongs to idumb or git, and no task may write it"
    if why is None and not _PLAIN.search(path):
        why = "does not look like a path"
    if why is None:
        return FileClaim(verb, path)
    at += len(text) - len(text.lstrip())
    source.report("dialect.unread-path", at, text.strip(), field="files", task=task, path=path, why=why)
    return None


# Texts, lists and the commands in them

# An element without others of its name in it. What opens and never closes is text; time is linear.
_ELEMENT = re.compile(r"<(automated|human-check|human|manual)>((?>(?:(?!</?\1>).)*))</\1>", re.DOTALL)
_FENCE = re.compile(r"^[ \t]*(`{3,}|~{3,})[ \t]*(\w*)[^\n]*\n(.*?)^[ \t]*\1[ \t]*$", re.DOTALL | re.MULTILINE)
_SHELLS = frozenset({"sh", "bash", "shell", "zsh"})
_SEPARATOR = re.compile(r"\s*(?:[,;]|&&)?\s*")
_SENTENCE = re.compile(r"[A-Z][a-z]+ [a-z]+(?:[ ]|[.,:](?:\s|$)|$)")
# What is no name of a program: a word in another script, a label, a prompt, a bullet.
_NO_PROGRAM = re.compile(r"(?:[^/]*[^\x00-\x7f][^/]*|[^/]+:|\d+[.)]|[-*$])\Z")
_GOES_ON = frozenset({"then", "and", "or", "but"})
_SAYS = frozenset({"passes", "succeeds", "exits", "returns", "→"})
_MISSING = re.compile(r"(MISSING|TODO|TBD|N/?A|none|manual)\b", re.IGNORECASE)
ITEM = re.compile(r"^[ \t]*(?:[-*+]|\d+[.)])[ \t]+(?:\[[ xX]\][ \t]+)?")
_PREFIX = re.compile(r"^(?:\*\*)?(?:Task|Step)\s+(?:[^\W\d]|[.-])*\d[\w.-]*\s*(?:[:.)]|—|–|-)\s*", re.IGNORECASE)


def verification(part: Piece) -> tuple[list[str], list[Piece], list[Piece]]:
    """Read a verification: its commands, what a person checks, and the prose beside them.

    Commands are in `<automated>`, or a text of nothing but commands in backticks or shell fences.
    """
    text, at = part
    commands, by_hand, prose = list[str](), list[Piece](), list[Piece]()
    for element in _ELEMENT.finditer(text):
        said, inner = element[2].strip(), Piece(element[2], at + element.start(2))
        own = list(_commands(element[2])) if element[1] == "automated" else []
        commands += own
        if element[1] != "automated":
            by_hand += [Piece(flat(said), inner.at)] if said else []
        elif not own and not _MISSING.match(said):
            prose += items(inner)
    rest = _ELEMENT.sub(lambda element: " " * len(element[0]), text)
    alone = _only_commands(rest) if rest.strip() and not commands else None
    if alone is None and rest.strip():
        prose += items(Piece(rest, at))
    return [*commands, *(alone or ())], by_hand, prose


def _commands(text: str) -> Iterator[str]:
    """Yield the commands of one `<automated>`; one that says that the command is still missing is none.

    Backticks beside other words make it a sentence about commands, and so do words that begin or go on like a sentence.
    """
    bare = textwrap.dedent(text).strip()
    alone = _only_commands(text)
    for command in alone if alone is not None else [] if inline.code_spans(bare) or _is_sentence(bare) else [bare]:
        if not _MISSING.match(command):
            yield html.unescape(command) if "&amp;" in command or "&lt;" in command or "&gt;" in command else command


def _is_sentence(text: str) -> bool:
    """Return whether a text begins like a sentence, or goes on like one outside of quotes: `npm test, then look`."""
    lines = [command.words for command in shell.read(text).commands if command.words]
    pairs = [pair for words in lines for pair in itertools.pairwise(words) if words[0].text not in ("echo", "printf")]
    return (
        _SENTENCE.match(text) is not None
        or any(not words[0].quoted and _NO_PROGRAM.match(words[0].text) for words in lines)
        or any(not after.quoted and after.text in _SAYS for _, after in pairs)
        or any(not word.quoted and word.text.endswith(",") and after.text in _GOES_ON for word, after in pairs)
    )


def _only_commands(text: str) -> list[str] | None:
    """Return the commands of a text that holds nothing else; None for other text."""
    commands: list[str] = []
    position = 0
    for fence in _FENCE.finditer(text):
        before = _spans(text[position : fence.start()]) if fence[2].lower() in _SHELLS else None
        if before is None:
            return None
        commands += [*before, *filter(None, [textwrap.dedent(fence[3]).strip()])]
        position = fence.end()
    rest = _spans(text[position:])
    return None if rest is None else commands + rest


def _spans(text: str) -> list[str] | None:
    """Return the commands of lines of nothing but code spans and separators, with or without a bullet; else None."""
    commands: list[str] = []
    for line in filter(str.strip, text.split("\n")):
        bare = ITEM.sub("", line, count=1).strip()
        at = 0
        for begin, end, ticks in inline.code_spans(bare):
            command = bare[begin + ticks : end - ticks].strip()
            if not _SEPARATOR.fullmatch(bare, at, begin) or not re.search(r"\w", command):
                return None
            commands.append(command)
            at = end
        if not at or bare[at:].strip():
            return None
    return commands


_LINE = re.compile(r"([ \t]*)[^\n]*\n?")
_LEAD = re.compile(r"\*\*[^*\n]+(?::\*\*|\*\*:)")


def items(part: Piece) -> list[Piece]:
    """Return the items of a list with their continuation lines, without labels in bold above them.

    A text without a list is one item.
    """
    text, at = part
    lines = [(match, ITEM.match(match[0])) for match in _LINE.finditer(text) if match[0]]
    top = min((len(line[1]) for line, marker in lines if marker), default=0)
    found: list[tuple[int, list[str]]] = []
    for line, marker in lines:
        if not found or (len(line[1]) <= top and (marker or _LEAD.fullmatch(line[0].strip()))):
            found.append((at + line.start(), [line[0][marker.end() :] if marker else line[0]]))
        else:
            found[-1][1].append(line[0])
    stated = [Piece(words, start) for start, gathered in found if (words := flat("".join(gathered)))]
    return [each for each in stated if not _LEAD.fullmatch(each.text)] or stated


def flat(text: str) -> str:
    """Return a text on one line."""
    return " ".join(text.split())


def clean(text: str) -> str:
    """Return a title on one line, without `Task 1:` before it and bold around it."""
    words = flat(text)
    words = _PREFIX.sub("", words, count=1) or words
    return words.removeprefix("**").removesuffix("**").strip()


def block(text: str) -> str:
    """Return a text without its common indentation and the blank lines around it."""
    first, newline, rest = text.partition("\n")
    if first.strip():
        return (first.strip() + newline + textwrap.dedent(rest)).strip()
    return textwrap.dedent(rest).strip("\n").rstrip()
