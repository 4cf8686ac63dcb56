"""Histories of everything legal in a file system and git that breaks programs, and random ones."""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Mapping
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

BYTES = {
    "all.bin": bytes(range(256)) * 3,
    "mixed.txt": b"one\r\ntwo\nthree\rfour",
    "no-newline.txt": b"no newline",
    "empty": b"",
    "utf16.txt": "hé\n".encode("utf-16"),
    "separators.txt": "a\u2028b\u0085c\u2029d\x0be\x0cf".encode(),
    "fence.md": b"```yaml steps\n- x\n```\n<!-- open\n~~~~\n",
    "frontmatter.md": b"---\ntype: plan\n---\n",
    "ident.txt": b"$Id$ $Id: 12 $\n",
    "conflict.txt": b"<<<<<<< a\n=======\n>>>>>>> b\n",
    "idumb.txt": b"Idumb-Task: T1-01\n",
}


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


def any_bytes(repo: History) -> None:
    repo.note("bytes of every kind", {f"bytes/{name}": data for name, data in BYTES.items()})
    turned = {f"bytes/{name}": data[::-1] + b"\0\xff\r" for name, data in BYTES.items()}
    repo.note("bytes turned around", turned)
    repo.note("bytes all gone", dict.fromkeys(turned, b""))


def names(repo: History) -> None:
    repo.note("odd names", {name: os.fsencode(name) + b"\n" for name in ODD_NAMES})
    for name in ODD_NAMES:
        repo.write(name, os.fsencode(name) + b" again\n", mode=0o755)
    repo.note("odd names, changed and made programs")
    repo.note("odd names gone", dict.fromkeys(ODD_NAMES))


def modes(repo: History) -> None:
    repo.write("modes/tool.sh", "#!/bin/sh\n")
    repo.write("modes/data", "data\n", mode=0o755)
    repo.note("two modes")
    (repo.root / "modes/tool.sh").chmod(0o755)
    (repo.root / "modes/data").chmod(0o644)
    repo.note("modes swapped, bytes unchanged")
    repo.write("modes/tool.sh", "#!/bin/sh\necho\n", mode=0o644)
    repo.note("mode and bytes")


def swaps(repo: History) -> None:
    repo.note("a file", {"swap": "a file\n"})
    repo.note("the file is a folder", {"swap": None, "swap/a": "1\n", "swap/b/c": "2\n", "swap/b/d/e": "3\n"})
    repo.remove("swap")
    repo.note("the folder is a file", {"swap": "a file again\n"})
    repo.note("deep", {"swap": None, "swap/a/b/c/d": "deep\n"})
    repo.remove("swap/a")
    repo.note("a file where a deep folder was", {"swap/a": "up\n"})


def links(repo: History) -> None:
    repo.link("links/to-file", "../README.md")
    repo.link("links/to-folder", "../kept")
    repo.link("links/dangling", "no/such/place")
    repo.link("links/odd name", "tar get\nwith newline\udcff")
    repo.link("links/itself", "itself")
    repo.note("links")
    repo.change(dict.fromkeys(("links/to-file", "links/to-folder", "links/dangling")))
    repo.write_all({"links/to-file": "now a file\n", "links/to-folder/file": "now a folder\n"})
    repo.link("links/dangling", "elsewhere")
    repo.note("links become file and folder, one points elsewhere")
    repo.change({"links/to-file": None, "links/to-folder": None})
    repo.link("links/to-file", "../README.md")
    repo.link("links/to-folder", "../kept")
    repo.note("file and folder become links")
    repo.change({"links/to-file": None, "links/to-file/below": "x\n", "kept": None})
    repo.link("kept", "links")
    repo.note("a link becomes a folder, and a folder of the base a link")
    repo.note("links gone", {"links": None})
    repo.note("folder back", {"kept": None, "kept/file.txt": "kept\n"})


def ignored(repo: History) -> None:
    rules = {".gitignore": "*.log\nbuild/\n/secret*\n"}
    repo.note("ignored files that are tracked", {**rules, "build/out.txt": "out\n", "a.log": "log\n"})
    more = {"b.log": "new\n", "build/more/x.txt": "x\n", "secret[1]": "s\n", "a.log": "log 2\n"}
    repo.note("more of them, one with brackets", more)
    repo.note("everything is ignored", {".gitignore": "*\n", "everything-is-ignored.txt": "x\n"})
    repo.note("a nested .gitignore", {"sub/.gitignore": "!*\n", "sub/inside.txt": "x\n"})
    repo.note("nothing is ignored", {".gitignore": None, "b.log": None})
    repo.note(".gitignore is a folder", {".gitignore/file": "x\n"})
    repo.remove(".gitignore")
    repo.link(".gitignore", "README.md")
    repo.note(".gitignore is a link")
    repo.remove(".gitignore")
    repo.note("dot files ignored, idumb's own with them", {".gitignore": ".*\n!.gitignore\n"})
    repo.note("and not", {".gitignore": None})


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


def everything_goes(repo: History) -> None:
    for entry in sorted(repo.root.iterdir()):
        if entry.name != ".git":
            repo.remove(entry.name)
    repo.note("everything is deleted")
    repo.note("and back", {"README.md": "# Back\n"})


CHAPTERS: tuple[Callable[[History], None], ...] = (
    any_bytes,
    names,
    modes,
    swaps,
    links,
    ignored,
    subjects,
    everything_goes,
)


_NAMES = (
    *("a", "a/b", "b/c/d", "c d", "d", "d/e", "d/f/g", "é", "[z]", "`t`", "nl\nx", "\udcff"),
    *(".gitignore", "x.log", "sub/.gitignore", "sub/y.log", ".env"),
)
_TARGETS = ("a", "nowhere", "d", "./x", "é", ".")
_DATA = (b"", b"x\n", b"a\r\n", b"\x00\xff\r", b"*.log\n", b"!*.log\n*\n", b"d\nsub\n")


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
