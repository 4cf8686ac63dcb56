"""A repository whose history has everything legal in a file system and git that breaks programs."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from tests.support.gitrepo import GitSandbox

ODD_NAMES = (
    "two words.txt",
    " leading and trailing ",
    "it's.txt",
    'say "hi".txt',
    '"quoted"',
    "`ticks`.txt",
    "back``ticks",
    "$(touch pwned)",
    "a;b&c|d.txt",
    "tab\there",
    "line\nbreak.txt",
    "ends in newline\n",
    "carriage\rreturn",
    "back\\slash",
    "-rf",
    "--help",
    "#hash",
    "# heading.md",
    "[x] box",
    "star*.txt",
    "what?.txt",
    "a[1].txt",
    "{a,b}.txt",
    "comma, separated.txt",
    "semi;colon",
    "colon: here",
    "none",
    "create",
    "create modify.txt",
    "<!-- comment -->",
    "naïve.txt",
    "nai\u0308ve.txt",
    "日本語/ファイル.txt",
    "emoji 😀.txt",
    "zero\u200bwidth",
    "line\u2028separator",
    "next\u0085line",
    "bom\ufeff.txt",
    "\udcff\udcfe.bin",
    "latin-\udce9.txt",
    ".hidden/.deep/.file",
    "...",
    "%41%00",
    "C:drive",
    "long-" + "x" * 240,
    "/".join(["d" * 60] * 12) + "/deep.txt",
    "x" * 120 + "\udcf0" + "y" * 100,
    ".github/workflows/ci.yml",
    "CLAUDE.md",
    ".env",
    "~$document.docx",
    "dir/~tilde",
    "\x01\x02control",
    "\x7fdelete",
    "trailing.dot.",
    "trailing space /x",
    "=equals",
    "!bang",
    "@at",
    "&amp;",
    "null",
    "true",
    "0644",
    "*",
    "**",
    "?",
)

BYTES = {
    "all.bin": bytes(range(256)) * 3,
    "nul.txt": b"a\0b\n",
    "lone-cr.txt": b"one\rtwo\rthree",
    "crlf.txt": b"one\r\ntwo\r\n",
    "mixed.txt": b"one\r\ntwo\nthree\rfour",
    "no-newline.txt": b"no newline",
    "empty": b"",
    "newline-only": b"\n",
    "latin.txt": "é".encode("latin-1"),
    "utf16.txt": "hé\n".encode("utf-16"),
    "bom.txt": b"\xef\xbb\xbfhello\n",
    "separators.txt": "a\u2028b\u0085c\u2029d\x0be\x0cf".encode(),
    "fence.md": b"```yaml steps\n- x\n```\n<!-- open\n~~~~\n",
    "frontmatter.md": b"---\ntype: plan\n---\n",
    "template.txt": b"{{ x }} ${y} %(z)s `w` $(v)\n",
    "ident.txt": b"$Id$ $Id: 12 $\n",
    "conflict.txt": b"<<<<<<< a\n=======\n>>>>>>> b\n",
    "surrogate.bin": b"\xed\xa0\x80 and \xed\xb3\xbf",
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


def names_one_by_one(repo: GitSandbox) -> None:
    for name in ODD_NAMES[:24:3]:
        repo.write(f"one/{name}", os.fsencode(name))
        commit(repo, f"add {name.splitlines()[0]}")


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
    "## Tasks",
    "#",
    "[x] done",
    "- [ ] a box",
    "T1-01: looks like a task",
    "### T1-02: looks like one",
    "<!-- a comment opens",
    "a `tick",
    "```yaml steps",
    "--amend",
    "fixup! x",
    ": colon first",
    "ends in ##",
    "Idumb-Task: T1-99",
    "subject\n\nIdumb-Task: T1-98\nIdumb-Run: x",
    "ünïcödé 日本語 😀",
    "tabs\tand\x0bodd\x0cblanks",
    "a\u2028b\u0085c",
    "",
    " ",
    "x" * 3000,
    "---",
    "*bold* _it_ [link](x) &amp; \\",
    "\ufeffbom",
    "null",
    "comment -- check: `true`",
)


def empty(repo: GitSandbox) -> None:
    commit(repo, "nothing changed")
    commit(repo, "nothing changed again")


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


def attributes(repo: GitSandbox) -> None:
    repo.write("attr/crlf.txt", "a\r\nb\r\n")
    commit(repo, "CRLF in the repository")
    repo.write("attr/.gitattributes", "*.txt text\n*.dat eol=crlf\n")
    commit(repo, "attributes come later")


def short(repo: GitSandbox) -> None:
    """A little of everything, in a few commits."""
    repo.write_all({"a.py": "a = 1\n", "crlf.txt": "a\r\nb", "bytes.bin": bytes(range(256)), "two words.txt": "ü\n"})
    repo.write("run.sh", "#!/bin/sh\n", mode=0o755)
    repo.write("`ticks`.md", "```yaml steps\n")
    commit(repo, "a little of everything")
    repo.write("a.py", "a = 2\n", mode=0o755)
    repo.remove("crlf.txt")
    repo.write("crlf.txt/below", "x")
    repo.link("link", "a.py")
    repo.write("odd \udcff\nname", "\x00")
    commit(repo, 'and a little more: "quoted" & `code`')
    repo.remove("two words.txt")
    repo.remove("link")
    repo.write("link", "no longer\n")
    commit(repo, "and less")


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
    names_one_by_one,
    modes,
    swaps,
    renames,
    links,
    ignored,
    subjects,
    empty,
    large,
    many,
    attributes,
    everything_goes,
)
