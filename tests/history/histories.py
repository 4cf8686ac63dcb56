"""Histories of names and subjects that break programs, and of files, links and ignore rules that trade places."""

from __future__ import annotations

import os
import random
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from tests.crash import rollback_user
from tests.crash.rollback_user import Files
from tests.support.gitrepo import GitSandbox

ODD_NAMES = (
    " leading and trailing ",
    'say "hi".txt',
    '"quoted"',
    "back``ticks",
    "$(touch pwned)",
    "tab\there",
    "line\nbreak.txt",
    "ends in newline\n",
    "carriage\rreturn",
    "back\\slash",
    "-rf",
    "# heading.md",
    "[x] box",
    "star*.txt",
    "a[1].txt",
    "{a,b}.txt",
    "comma, separated.txt",
    "colon: here",
    "create modify.txt",
    "<!-- comment -->",
    "naïve.txt",
    "nai\u0308ve.txt",
    "日本語/ファイル.txt",
    "zero\u200bwidth",
    "line\u2028separator",
    "bom\ufeff.txt",
    "\udcff\udcfe.bin",
    ".hidden/.deep/.file",
    "...",
    "long-" + "x" * 240,
    "/".join(["d" * 60] * 12) + "/deep.txt",
    ".github/workflows/ci.yml",
    "\x01\x02control",
    "trailing space /x",
    "&amp;",
    "0644",
    "*",
)


@dataclass(frozen=True, slots=True)
class History(GitSandbox):
    """A folder that a chapter changes, without git. `steps` have a title, and the files after it."""

    steps: list[tuple[str, Files]] = field(default_factory=list)

    @classmethod
    def begin(cls, place: Path) -> History:
        history = cls(place)
        history.write_all({"README.md": "# Nasty\n", "kept/file.txt": "kept\n", ".gitattributes": "*.bin -text\n"})
        # It leads out, so it is there before; a task that makes it fails.
        history.link("links/absolute", "/nonexistent/place")
        history.note("base")
        return history

    def note(self, title: str, files: Mapping[str, str | bytes | None] | None = None) -> None:
        """Change these files, as `change` does, and add a step."""
        self.change(files or {})
        self.steps.append((title, rollback_user.look(self.root)))


def names(repo: History) -> None:
    repo.note("odd names", {name: os.fsencode(name) + b"\n" for name in ODD_NAMES})
    for name in ODD_NAMES:
        repo.write(name, os.fsencode(name) + b" again\n", mode=0o755)
    repo.note("odd names, changed and made programs")
    repo.note("odd names gone", dict.fromkeys(ODD_NAMES))


def subjects(repo: History) -> None:
    for number, subject in enumerate(SUBJECTS):
        repo.note(subject, {"subject.txt": f"{number}\n"})


SUBJECTS = (
    "# a heading",
    "[x] done",
    "T1-01: looks like a task",
    "<!-- a comment opens",
    "```yaml steps",
    "--amend",
    "subject\n\nIdumb-Task: T1-98\nIdumb-Run: x",
    "ünïcödé 日本語 😀",
    "tabs\tand\x0bodd\x0cblanks",
    "a\u2028b\u0085c",
    "",
    "x" * 3000,
    "---",
    "\ufeffbom",
    "comment -- check: `true`",
)


_NAMES = (
    *("a", "a/b", "b/c/d", "c d", "d", "d/e", "d/f/g", "é", "[z]", "`t`", "nl\nx", "\udcff"),
    *(".gitignore", "x.log", "sub/.gitignore", "sub/y.log", ".env"),
)
_TARGETS = ("a", "nowhere", "d", "./x", "é", ".")
_DATA = (
    *(b"", b"x\n", b"a\r\n", b"\x00\xff\r", b"*.log\n", b"!*.log\n*\n", b"d\nsub\n"),
    *(bytes(range(256)), b"$Id: 12 $\n", b"<<<<<<< a\n=======\n>>>>>>> b\n", b"```yaml steps\n- x\n```\n<!-- open\n"),
)


def grow(repo: History, seed: int, count: int) -> None:
    """Note random changes of few names, so that files, folders, links and ignore rules trade places often."""
    chance = random.Random(seed)
    for number in range(count):
        for _ in range(chance.randrange(1, 5)):
            _change(repo, chance, chance.choice(_NAMES))
        repo.note(f"random {number}")


def _change(repo: GitSandbox, chance: random.Random, name: str) -> None:
    place = repo.root / name
    kind = chance.random()
    plain = place.is_file() and not place.is_symlink()
    if plain and kind < 0.2:
        place.chmod(chance.choice([0o644, 0o755]))
        return
    for above in place.parents:
        if above != repo.root and repo.root in above.parents and (above.is_symlink() or above.is_file()):
            above.unlink()
    if place.is_symlink() or place.exists():
        repo.remove(name)
    if kind < 0.4:
        return
    if kind < 0.55:
        repo.link(name, chance.choice(_TARGETS))
    else:
        repo.write(name, chance.choice(_DATA), mode=chance.choice([0o644, 0o755]))
