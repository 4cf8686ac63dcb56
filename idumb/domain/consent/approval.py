"""An approval: a person's consent to one contract, bound to every part that decides what runs."""

from __future__ import annotations

import dataclasses
import posixpath
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import field
from datetime import UTC, date, datetime, timedelta
from typing import Any

from idumb import lazy_pattern
from idumb.domain import canonical_json, paths, wording
from idumb.domain import contract as contracts
from idumb.domain.contract import Contract
from idumb.domain.settings import Settings
from idumb.lazy_dataclass import dataclass

SCHEMA = 1
APPROVED = "approved"

LIVE = "live"
MISSING = "missing"
EXPIRED = "expired"
REVOKED = "revoked"
VOID = "void"

BASE = "base"
PARTS = (
    "plans",
    "commands",
    "adapters",
    "files",
    "policy",
    "protected",
    "scope",
    "limits",
    "configuration",
    BASE,
)
"""The parts that an approval can bind, in the order in which changes are listed."""

ANSWER = frozenset({"question", "answer", "by", "at"})

_DURATION = lazy_pattern.compile(r"(?:(\d{1,4})w)?(?:(\d{1,5})d)?(?:(\d{1,6})h)?(?:(\d{1,7})m)?")
_TIME = "%Y-%m-%dT%H:%M:%S.%fZ"


@dataclass(frozen=True, slots=True)
class Part:
    """A readable JSON value and the SHA-256 of its canonical form."""

    digest: str
    value: Any


@dataclass(frozen=True, slots=True)
class Change:
    """A part that differs from the approved one; `keys` are the places that differ."""

    part: str
    keys: tuple[str, ...]

    @property
    def words(self) -> str:
        return f"{self.part} ({wording.listed(self.keys)})" if self.keys else self.part


@dataclass(frozen=True, slots=True)
class Approval:
    """`plan_hash` is the phase's; `expires` is a time like `validated_at`; `accepted` are irreversible tasks.

    `answers` are a person's answers to open questions of the self-check: question, answer, by and at of each.
    `base_commit` is recorded; it must still be the base only if it is a part in `bound`.
    """

    phase: str
    plan_hash: str
    contract_hash: str
    validated_at: str
    validator: str
    scope: str
    by: str
    mode: str
    nonce: str
    bound: Mapping[str, Part] = field(default_factory=dict)
    base_commit: str | None = None
    expires: str | None = None
    accepted: tuple[str, ...] = ()
    status: str = APPROVED
    schema: int = SCHEMA
    answers: tuple[Mapping[str, str], ...] = ()

    def as_dict(self) -> dict[str, Any]:
        """Return the fields as JSON has them."""
        answers = [dict(answer) for answer in self.answers]
        return dataclasses.asdict(self) | {"accepted": list(self.accepted), "answers": answers}

    def canonical(self) -> bytes:
        """Return the bytes that a signature covers."""
        return canonical_json.encode(self.as_dict())


@dataclass(frozen=True, slots=True)
class StoredApproval:
    """A stored approval: with its signature (armoured text) and the person who revoked it, if any."""

    approval: Approval
    signature: str | None = None
    revoked: Mapping[str, str] | None = None


def from_dict(value: object) -> Approval | None:
    """Return the approval that `as_dict` wrote; None for anything else."""
    if not isinstance(value, Mapping):
        return None
    value = {"answers": [], **value}
    if set(value) != {f.name for f in dataclasses.fields(Approval)}:
        return None
    words = ("phase", "plan_hash", "contract_hash", "validated_at", "validator", "scope", "by", "mode", "nonce")
    if not all(isinstance(value[name], str) for name in words):
        return None
    if value["schema"] != SCHEMA or value["status"] != APPROVED:
        return None
    if not all(isinstance(value[name], str | None) for name in ("base_commit", "expires")):
        return None
    bound, accepted = _parts(value["bound"]), value["accepted"]
    if bound is None or not isinstance(accepted, list) or not all(isinstance(a, str) for a in accepted):
        return None
    answers = value["answers"]
    if not isinstance(answers, list) or not all(_is_answer(answer) for answer in answers):
        return None
    return Approval(**{**value, "bound": bound, "accepted": tuple(accepted), "answers": tuple(answers)})


def _is_answer(value: object) -> bool:
    return isinstance(value, Mapping) and set(value) == ANSWER and all(isinstance(v, str) for v in value.values())


def _parts(value: object) -> dict[str, Part] | None:
    """Return the parts if their digests match their values. Parts that this version does not know are binding too."""
    if not isinstance(value, Mapping):
        return None
    parts = {}
    for name, entry in value.items():
        if not isinstance(entry, Mapping) or set(entry) != {"digest", "value"}:
            return None
        if canonical_json.digest(entry["value"]) != entry["digest"]:
            return None
        if name == "files" and not isinstance(entry["value"], Mapping):
            return None
        parts[str(name)] = Part(entry["digest"], entry["value"])
    return parts


def part(value: Any) -> Part:
    return Part(canonical_json.digest(value), value)


def bound(
    contract: Contract,
    settings: Settings,
    *,
    commands: Sequence[str],
    adapters: Mapping[str, Sequence[str]],
    files: Mapping[str, str],
    policy: Any = None,
    base: str | None = None,
) -> dict[str, Part]:
    """Return all parts of a contract. `adapters` are resolved argument lists by binding, `files` SHA-256 by path.

    `policy` is any JSON value, `base` the commit that the contract is pinned to.
    """
    plans = contract.plans
    deciding = contracts.governing_settings(plans, settings).deciding()
    values: dict[str, Any] = {
        "plans": {p.path: p.sha256 for p in plans},
        "commands": list(commands),
        "adapters": {name: list(argv) for name, argv in adapters.items()},
        "files": dict(files),
        "policy": policy,
        "protected": {
            "always": list(paths.ALWAYS_PROTECTED),
            "unless_declared": list(paths.PROTECTED_UNLESS_DECLARED),
            "configuration": list(settings.protected),
            "plans": {p.path: list(p.scope.protected) for p in plans},
        },
        "scope": {p.path: p.scope.root or "." for p in plans},
        "limits": {
            "plans": {p.path: dataclasses.asdict(p.limits) for p in plans if p.limits is not None},
            "processes": deciding["limits"],
            "run": deciding["run"],
        },
        "configuration": deciding,
    }
    if base is not None:
        values[BASE] = base
    return {name: part(values[name]) for name in PARTS if name in values}


def changes(was: Mapping[str, Part], now: Mapping[str, Part]) -> tuple[Change, ...]:
    """Return the parts that differ, in the order of `PARTS`; a part that only one side has differs."""
    names = dict.fromkeys((*(p for p in PARTS if p in was or p in now), *was))
    return tuple(
        Change(name, _keys(was[name].value if name in was else None, now[name].value if name in now else None))
        for name in names
        if name not in was or name not in now or was[name].digest != now[name].digest
    )


def _keys(was: Any, now: Any, depth: int = 2) -> tuple[str, ...]:
    """Return the keys whose values differ, dotted; () if the values are not mappings."""
    if not isinstance(was, Mapping) or not isinstance(now, Mapping):
        return ()
    keys: list[str] = []
    for key in sorted({*was, *now}, key=str):
        if canonical_json.digest(was.get(key)) == canonical_json.digest(now.get(key)) and (key in was) == (key in now):
            continue
        below = _keys(was.get(key), now.get(key), depth - 1) if depth > 1 else ()
        keys += [f"{key}.{name}" for name in below] or [str(key)]
    return tuple(keys)


def status(kept: StoredApproval, now: str, present: Callable[[], Mapping[str, Part]]) -> str:
    """Return LIVE, REVOKED, EXPIRED or VOID. `now` is the clock's time, `present` returns the current parts."""
    if kept.revoked is not None:
        return REVOKED
    if kept.approval.expires is not None and kept.approval.expires <= now:
        return EXPIRED
    return VOID if changes(kept.approval.bound, present()) else LIVE


def expires_at(text: str, now: str) -> str:
    """Return the expiry for `90m`, `12h`, `7d`, `2w3d`, a date (its start, UTC) or a time.

    Raises ValueError, with words, if it is none of these or not after `now`.
    """
    begun = datetime.strptime(now, _TIME).replace(tzinfo=UTC)
    ends = _ends(text.strip(), begun)
    if ends <= begun:
        raise ValueError(f"{text!r} is not in the future")
    return ends.astimezone(UTC).strftime(_TIME)


def _ends(text: str, begun: datetime) -> datetime:
    match = _DURATION.fullmatch(text)
    try:
        if match is not None and text:
            weeks, days, hours, minutes = (int(number or 0) for number in match.groups())
            return begun + timedelta(weeks=weeks, days=days, hours=hours, minutes=minutes)
        if re.fullmatch(r"\d{4}-\d\d-\d\d", text):
            text = f"{date.fromisoformat(text).isoformat()}T00:00:00+00:00"
        end = datetime.fromisoformat(text)
    except (ValueError, OverflowError):
        raise ValueError(f"{text!r} is no duration (90m, 12h, 7d, 2w) and no date (2030-01-31)") from None
    return end if end.tzinfo is not None else end.replace(tzinfo=UTC)


_SEPARATORS = lazy_pattern.compile(r"[\s;|&()<>\"'`=,]+")
_MODULE = lazy_pattern.compile(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+")
_NAME = lazy_pattern.compile(r"[A-Za-z_]\w*")
_READ_BY = {
    "make": ("Makefile", "makefile", "GNUmakefile"),
    "just": ("justfile",),
    "npm": ("package.json",),
    "tox": ("tox.ini",),
}


_PLAIN_OPTION = lazy_pattern.compile(r"-(?!m.)[\w-]*")
_HERE = r"\$PWD|\$\{PWD\}|\$\(pwd\)|`pwd`"
# Every word is tried in each folder, so this limit prevents quadratic time for thousands of `cd`.
_MOST_FOLDERS = 16


def named_files(
    commands: Iterable[str], written: Iterable[str], root: str, arguments: Iterable[Sequence[str]] = ()
) -> tuple[str, ...]:
    """Return relative paths that commands and argument lists may name; the content of those files decides what they do.

    `tests/test_a.py::one`, `--config=x.ini`, `python -m tests.test_a`, `cd tests && ./a.sh` and absolute paths below
    `root`, the repository's own, name files too. Paths that a task declares to write (`written`, globs allowed) are
    omitted, because the plan itself changes them. Each argument of an argument list is one word, including its spaces.
    """
    is_written = paths.cover(written)
    lists = [tuple(argv) for argv in arguments]
    texts = dict.fromkeys([*commands, *(" ".join(argv) for argv in lists)])
    files = {path for text in texts for path in _named_paths(text, root)}
    files |= {path for argv in lists for argument in argv for path in _named_by(_whole(argument), root)}
    return tuple(sorted(path for path in files if not is_written(path)))


def _whole(argument: str) -> tuple[str, ...]:
    """Return what an argument may name: itself, and what follows `--option=`."""
    return (argument, argument.partition("=")[2])


def unbound(commands: Iterable[str], files: Iterable[str], root: str) -> tuple[str, ...]:
    """Return commands that name none of these files and are not just a program with options (`git --version`)."""
    bound_files = frozenset(files)
    return tuple(
        command
        for command in dict.fromkeys(commands)
        if not _is_plain_program(command) and bound_files.isdisjoint(_named_paths(command, root))
    )


def _is_plain_program(command: str) -> bool:
    program, *options = command.split() or [""]
    is_program_name = re.fullmatch(r"(?:/(?:[\w.+-]+/)*)?[\w.+-]+", program) is not None
    return is_program_name and all(_PLAIN_OPTION.fullmatch(option) for option in options)


def _named_paths(command: str, root: str) -> set[str]:
    """Return what the words of one command may name, from the root or from a folder that it changed to."""
    # a word does not end inside the root's own name, whatever characters it contains
    top = r"(?<![^\s;|&()<>\"'`=,])" + re.escape(root.rstrip("/"))
    plain = re.sub(rf"(?:{_HERE}|{top})[\"']?/", "./", re.sub(r"/(?:\.?/)+", "/", command))
    names: set[str] = set()
    # `"tests"/a.sh` is one word for a shell, and `sh -c "a.sh"` has two
    for text in dict.fromkeys((plain, re.sub(r"[\"']", "", plain))):
        names |= _named_by(_SEPARATORS.split(text), root)
    return names


def _named_by(words: Sequence[str], root: str) -> set[str]:
    named_paths: set[str] = set()
    folders, last, before = [""], "", ""
    for word in filter(None, words):
        names = tuple(_paths_of(word, before))
        placed = (_from_root(root, folder, name) for folder in folders for name in names)
        named_paths.update(path for path in placed if path is not None and paths.problem(path) is None)
        if before == "cd" and len(folders) < _MOST_FOLDERS:
            last = posixpath.join(last, word)
            folders += [folder for folder in dict.fromkeys((word, last)) if folder not in folders]
        if before != "cd" or word != "--":
            before = word
    return named_paths


def _from_root(root: str, folder: str, name: str) -> str | None:
    """Return a path relative to the root, or None if it is outside."""
    top = posixpath.normpath(root).rstrip("/") + "/"
    path = posixpath.normpath(posixpath.join(top, folder, name))
    return path.removeprefix(top) if path.startswith(top) else None


def _paths_of(word: str, before: str) -> Iterable[str]:
    """Yield what a word may name; `before` is the previous word."""
    name = word.partition("::")[0]
    yield name
    yield from _READ_BY.get(name.rpartition("/")[2], ())
    module = name if before == "-m" else name.removeprefix("-m")
    if _MODULE.fullmatch(module) or (_NAME.fullmatch(module) and (before == "-m" or module != name)):
        yield from _of_module(module)


def _of_module(module: str) -> Iterable[str]:
    """Yield the files that Python reads for a module: its own, and those of its packages."""
    place = module.replace(".", "/")
    yield f"{place}.py"
    yield f"{place}/__main__.py"
    while place:
        yield f"{place}/__init__.py"
        place = place.rpartition("/")[0]
