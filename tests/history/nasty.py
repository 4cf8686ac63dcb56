"""A repository whose history has everything legal in a file system and git that breaks programs."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

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


def begun(place: Path) -> GitSandbox:
    """Create a repository with one commit, the base of a chapter's changes."""
    repo = GitSandbox.create(place)
    repo.write_all({"README.md": "# Nasty\n", "kept/file.txt": "kept\n", ".gitattributes": "*.bin -text\n"})
    repo.link("links/absolute", "/nonexistent/place")  # leads out, so it is there before; a task that makes it fails
    repo.commit("base")
    return repo


def commit(repo: GitSandbox, message: str) -> None:
    repo.git("add", "--all", "--force", "--", ".")
    repo.git("commit", "--quiet", "--allow-empty", "--allow-empty-message", "--cleanup=verbatim", "-m", message)


def any_bytes(repo: GitSandbox) -> None:
    for name, data in BYTES.items():
        repo.write(f"bytes/{name}", data)
    commit(repo, "bytes of every kind")
    for name, data in BYTES.items():
        repo.write(f"bytes/{name}", data[::-1] + b"\0\xff\r")
    commit(repo, "bytes turned around")
    for name in BYTES:
        repo.write(f"bytes/{name}", b"")
    commit(repo, "bytes all gone")


def names(repo: GitSandbox) -> None:
    for name in ODD_NAMES:
        repo.write(name, os.fsencode(name) + b"\n")
    commit(repo, "odd names")
    for name in ODD_NAMES:
        repo.write(name, os.fsencode(name) + b" again\n", mode=0o755)
    commit(repo, "odd names, changed and made programs")
    for name in ODD_NAMES:
        (repo.root / name).unlink()
    commit(repo, "odd names gone")


def modes(repo: GitSandbox) -> None:
    repo.write("modes/tool.sh", "#!/bin/sh\n")
    repo.write("modes/data", "data\n", mode=0o755)
    commit(repo, "two modes")
    (repo.root / "modes/tool.sh").chmod(0o755)
    (repo.root / "modes/data").chmod(0o644)
    commit(repo, "modes swapped, bytes unchanged")
    repo.write("modes/tool.sh", "#!/bin/sh\necho\n", mode=0o644)
    commit(repo, "mode and bytes")


def swaps(repo: GitSandbox) -> None:
    repo.write("swap", "a file\n")
    commit(repo, "a file")
    repo.remove("swap")
    repo.write_all({"swap/a": "1\n", "swap/b/c": "2\n", "swap/b/d/e": "3\n"})
    commit(repo, "the file is a folder")
    repo.remove("swap")
    repo.write("swap", "a file again\n")
    commit(repo, "the folder is a file")
    repo.remove("swap")
    repo.write("swap/a/b/c/d", "deep\n")
    commit(repo, "deep")
    repo.remove("swap/a")
    repo.write("swap/a", "up\n")
    commit(repo, "a file where a deep folder was")


def renames(repo: GitSandbox) -> None:
    repo.write_all({f"move/{n}.txt": f"{n}\n" * 50 for n in range(5)})
    commit(repo, "to be moved")
    (repo.root / "move").rename(repo.root / "moved")
    commit(repo, "folder renamed")
    (repo.root / "moved/0.txt").rename(repo.root / "moved/tmp")
    (repo.root / "moved/1.txt").rename(repo.root / "moved/0.txt")
    (repo.root / "moved/tmp").rename(repo.root / "moved/1.txt")
    (repo.root / "moved/2.txt").rename(repo.root / "moved/TWO.txt")
    commit(repo, "two swapped, one in capitals")


def links(repo: GitSandbox) -> None:
    repo.link("links/to-file", "../README.md")
    repo.link("links/to-folder", "../kept")
    repo.link("links/dangling", "no/such/place")
    repo.link("links/odd name", "tar get\nwith newline\udcff")
    repo.link("links/itself", "itself")
    commit(repo, "links")
    for name in ("to-file", "to-folder"):
        repo.remove(f"links/{name}")
    repo.write("links/to-file", "now a file\n")
    repo.write("links/to-folder/file", "now a folder\n")
    repo.remove("links/dangling")
    repo.link("links/dangling", "elsewhere")
    commit(repo, "links become file and folder, one points elsewhere")
    repo.remove("links/to-file")
    repo.remove("links/to-folder")
    repo.link("links/to-file", "../README.md")
    repo.link("links/to-folder", "../kept")
    commit(repo, "file and folder become links")
    repo.remove("links/to-file")
    repo.write("links/to-file/below", "x\n")
    repo.remove("kept")
    repo.link("kept", "links")
    commit(repo, "a link becomes a folder, and a folder of the base a link")
    repo.remove("links")
    commit(repo, "links gone")
    repo.remove("kept")
    repo.write("kept/file.txt", "kept\n")
    commit(repo, "folder back")


def ignored(repo: GitSandbox) -> None:
    repo.write_all({".gitignore": "*.log\nbuild/\n/secret*\n", "build/out.txt": "out\n", "a.log": "log\n"})
    commit(repo, "ignored files that are tracked")
    repo.write_all({"b.log": "new\n", "build/more/x.txt": "x\n", "secret[1]": "s\n", "a.log": "log 2\n"})
    commit(repo, "more of them, one with brackets")
    repo.write(".gitignore", "*\n")
    repo.write("everything-is-ignored.txt", "x\n")
    commit(repo, "everything is ignored")
    repo.write("sub/.gitignore", "!*\n")
    repo.write("sub/inside.txt", "x\n")
    commit(repo, "a nested .gitignore")
    repo.remove(".gitignore")
    repo.remove("b.log")
    commit(repo, "nothing is ignored")
    repo.write(".gitignore/file", "x\n")
    commit(repo, ".gitignore is a folder")
    repo.remove(".gitignore")
    repo.link(".gitignore", "README.md")
    commit(repo, ".gitignore is a link")
    repo.remove(".gitignore")
    repo.write(".gitignore", ".*\n!.gitignore\n")
    commit(repo, "dot files ignored, idumb's own with them")
    repo.remove(".gitignore")
    commit(repo, "and not")


def subjects(repo: GitSandbox) -> None:
    for number, subject in enumerate(SUBJECTS):
        repo.write("subject.txt", f"{number}\n")
        commit(repo, subject)


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


def large(repo: GitSandbox) -> None:
    repo.write("large.bin", bytes(range(256)) * (12 << 10))
    repo.write("large.txt", "a line of text that is written often\n" * 60_000)
    repo.write("one-line.txt", "x" * 2_000_000)
    commit(repo, "large files")
    repo.write("large.txt", "another line\n" * 60_000)
    repo.remove("large.bin")
    commit(repo, "large files changed")


def many(repo: GitSandbox) -> None:
    repo.write_all({f"many/{n % 40}/file-{n}.txt": f"{n}\n" for n in range(1500)})
    commit(repo, "thousands of files")
    for n in range(0, 1500, 2):
        repo.remove(f"many/{n % 40}/file-{n}.txt")
    commit(repo, "half of them gone")
    repo.remove("many")
    commit(repo, "all of them gone")


def everything_goes(repo: GitSandbox) -> None:
    for entry in sorted(repo.root.iterdir()):
        if entry.name != ".git":
            repo.remove(entry.name)
    commit(repo, "everything is deleted")
    repo.write("README.md", "# Back\n")
    commit(repo, "and back")


CHAPTERS: tuple[Callable[[GitSandbox], None], ...] = (
    any_bytes,
    names,
    modes,
    swaps,
    renames,
    links,
    ignored,
    subjects,
    large,
    many,
    everything_goes,
)
