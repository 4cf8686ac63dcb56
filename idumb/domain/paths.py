"""Paths as a plan may write them: relative, inside the workspace, never protected. Text only, links are not seen."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable

ALWAYS_PROTECTED = (".git", ".git/**", ".idumb", ".idumb/**", ".planning", ".planning/**")
"""No plan and no setting opens these."""

OWN_FILES = (".idumb/**", ".planning/**")
"""What idumb itself writes; outside ledger, task commits and rollback."""

PROTECTED_UNLESS_DECLARED = (
    ".gitattributes",
    ".gitmodules",
    ".github/**",
    ".gitlab-ci.yml",
    ".circleci/**",
    "Jenkinsfile",
    ".claude/**",
    ".codex/**",
    ".cursor/**",
    ".gemini/**",
    ".vscode/**",
    ".mcp.json",
    "AGENTS.md",
    "CLAUDE.md",
    "GEMINI.md",
    ".env",
    ".envrc",
)
"""Protected unless a task declares that very path, without wildcards, under Files."""

# HFS+ compares names without these, so `.g\u200cit` would be `.git` there.
_OVERLOOKED = dict.fromkeys((*range(0x200C, 0x2010), *range(0x202A, 0x202F), *range(0x206A, 0x2070), 0xFEFF))


def problem(path: str) -> str | None:
    """Why this text can never be a path inside a workspace, or None."""
    if not path:
        return "is empty"
    if "\0" in path:
        return "holds a NUL character"
    if path.startswith("/") or re.match(r"[A-Za-z]:[\\/]", path):
        return "is absolute"
    if path.startswith("~"):
        return "begins with ~, which names a home directory in shells"
    parts = path.split("/")
    if ".." in parts:
        return "leads out of the workspace (..)"
    if "." in parts or "" in parts[:-1]:
        return "has an empty or `.` part"
    return None


@functools.lru_cache(maxsize=4096)
def has_wildcard(path: str) -> bool:
    return any(c in path for c in "*?[{") or path.endswith("/")


@functools.lru_cache(maxsize=4096)
def pattern(glob: str) -> re.Pattern[str]:
    """A glob as a linear regular expression: `**` crosses folders, `*` and `?` do not, `{a,b}` is a choice.

    A trailing `/` means everything below. Matching is on the whole path.
    """
    if glob.endswith("/"):
        glob += "**"
    return re.compile(_translate(glob), re.DOTALL)


def _translate(glob: str) -> str:
    out: list[str] = []
    i, depth, end = 0, 0, len(glob)
    while i < end:
        c = glob[i]
        i += 1
        if c == "*":
            if glob.startswith("*", i):
                i += 1
                if glob.startswith("/", i):
                    i += 1
                    out.append("(?:[^/]+/)*")
                else:
                    out.append(".*")
            else:
                out.append("[^/]*")
        elif c == "?":
            out.append("[^/]")
        elif c == "[" and (close := glob.find("]", i + 1)) > 0:
            body = glob[i:close].replace("\\", "\\\\").replace("[", "\\[")
            out.append("[" + ("^" + body[1:] if body[0] in "!^" else body) + "]")
            i = close + 1
        elif c == "{" and "}" in glob[i:]:
            depth += 1
            out.append("(?:")
        elif c == "}" and depth:
            depth -= 1
            out.append(")")
        elif c == "," and depth:
            out.append("|")
        else:
            out.append(re.escape(c))
    return "".join(out) + ")" * depth


def matches(path: str, glob: str) -> bool:
    """Whether `glob` (or the literal path) covers `path`."""
    return path == glob or (has_wildcard(glob) and pattern(glob).fullmatch(path) is not None)


def matches_any(path: str, globs: Iterable[str]) -> bool:
    return any(matches(path, glob) for glob in globs)


def _folded(path: str) -> str:
    if path.isascii():
        return path.lower()
    import unicodedata

    return unicodedata.normalize("NFC", path.casefold()).translate(_OVERLOOKED)


def protecting_rule(path: str, protected: Iterable[str], declared: Iterable[str] = ()) -> str | None:
    """The rule that forbids writing `path`, or None. Case is folded, so `.GIT` is `.git` everywhere.

    `protected` comes from plan and configuration and admits no exception; `declared` are the paths under Files.
    """
    folded = _folded(path)
    parts = folded.split("/")
    if ".git" in parts:
        return ".git"
    for rule in (*ALWAYS_PROTECTED, *map(_folded, protected)):
        if matches(folded, rule) or (not has_wildcard(rule) and folded.startswith(rule + "/")):
            return rule
    if path in declared:
        return None
    for rule in PROTECTED_UNLESS_DECLARED:
        if matches(folded, _folded(rule)):
            return rule
    return None
