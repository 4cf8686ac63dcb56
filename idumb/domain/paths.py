"""Paths that a plan may write: relative, inside the workspace, not protected. Only text; links are not resolved."""

from __future__ import annotations

import fnmatch
import functools
import re
from collections.abc import Callable, Iterable, Sequence

ALWAYS_PROTECTED = (".git", ".git/**", ".idumb", ".idumb/**", ".planning", ".planning/**")
"""No plan and no setting can unprotect these."""

OWN_FILES = (".idumb/**", ".planning/**")
"""Files that idumb itself writes; ledger, task commits and rollback omit them."""

OUTSIDE = ".."
"""The first part of each path outside the project's folder. No task may write there."""

IGNORE_FILE = ".gitignore"
"""The file with git's ignore rules of a folder."""

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
"""Protected unless a task declares exactly that path, without wildcards, under Files."""
PLACE_IN_FILE = re.compile(
    r"(?<=\w)(?::\d+(?:-\w+)?(?:,[ ]?\d+-\d+)*|#L\d+(?:-L?\d+)?|(?<=\.py)::[\w.]+(?:::[\w.]+)?)"
    r"(?=[`\"'\s,;)]|$)"
)
"""What people write behind a path, such as `:12-30`, `#L12` or `::test_name`."""

_DRIVE = re.compile(r"[A-Za-z]:[\\/]")
_HOME = re.compile(r"~[\w.+-]*(/|$)")
# HFS+ ignores these characters in names, so `.g\u200cit` is `.git` there.
_OVERLOOKED = dict.fromkeys((*range(0x200C, 0x2010), *range(0x202A, 0x202F), *range(0x206A, 0x2070), 0xFEFF))


def problem(path: str) -> str | None:
    """Return why this text can never be a path inside a workspace, or None."""
    if path[1:2] == ":" and _DRIVE.match(path):
        return "is absolute"
    if path.startswith("~") and _HOME.match(path):
        return "starts with ~, which shells expand to a home directory"
    return never_below(path)


def never_below(path: str) -> str | None:
    """Return why no file below a folder has this path, or None. The other texts of `problem` may be names of files."""
    if not path:
        return "is empty"
    if "\0" in path:
        return "contains a NUL character"
    if path.startswith("/"):
        return "is absolute"
    parts = path.split("/")
    if ".." in parts:
        return "leads out of the workspace (..)"
    if "." in parts or "" in parts[:-1]:
        return "has an empty or `.` part"
    return None


def is_outside(path: str) -> bool:
    """Return whether a path of a change is outside the project's folder."""
    return path.startswith(f"{OUTSIDE}/")


def is_below(path: str, folder: str) -> bool:
    """Return whether a path is that of a folder or of something below it."""
    return f"{path}/".startswith(f"{folder.rstrip('/')}/")


def has_wildcard(path: str) -> bool:
    return "*" in path or "?" in path or "[" in path or "{" in path or path.endswith("/")


@functools.lru_cache(maxsize=4096)
def matcher(glob: str) -> Callable[[str], bool]:
    """Return a function that tells whether a whole path matches a glob, in time linear in the number of stars.

    `**` as a whole folder name crosses folders, `*` and `?` do not, `[...]` is one character of a set, `{a,b}` is a
    choice; a trailing `/` means everything below.
    """
    whole = glob + "**" if glob.endswith("/") else glob
    choices = [[_folder(part) for part in choice.split("/")] for choice in _choices(whole)]
    return lambda path: any(_fits(path.split("/"), parts) for parts in choices)


MOST_CHOICES = 64


def _choices(glob: str) -> list[str]:
    """Expand the braces of a glob, innermost first. If there are too many choices, braces are literal."""
    pending, done = [glob], []
    while pending:
        pattern = pending.pop()
        close = pattern.find("}")
        start = pattern.rfind("{", 0, close) if close > 0 else -1
        if start < 0:
            done.append(pattern)
        else:
            pending += [
                pattern[:start] + option + pattern[close + 1 :] for option in pattern[start + 1 : close].split(",")
            ]
        if len(pending) + len(done) > MOST_CHOICES:
            return [glob]
    return done


def _folder(part: str) -> re.Pattern[str] | None:
    """Compile one folder name; None for `**`."""
    return None if part == "**" else re.compile(fnmatch.translate(part))


_NO_NAME = re.compile(r"(?!)")


def _fits(names: list[str], parts: Sequence[re.Pattern[str] | None]) -> bool:
    """Match folder by folder. On failure, only the last `**` takes one more folder, which is sufficient for globs."""
    if names[0] == OUTSIDE:
        return False
    name = part = 0
    star, resume = -1, 0
    while name < len(names):
        pattern = parts[part] if part < len(parts) else _NO_NAME
        if pattern is None:
            star, resume, part = part, name, part + 1
        elif pattern.match(names[name]):
            name, part = name + 1, part + 1
        elif star >= 0:
            resume += 1
            name, part = resume, star + 1
        else:
            return False
    return part == len(parts)


def matches(path: str, glob: str) -> bool:
    """Whether `glob` (or the literal path) covers `path`."""
    return path == glob or (has_wildcard(glob) and matcher(glob)(path))


def matches_any(path: str, globs: Iterable[str]) -> bool:
    return any(matches(path, glob) for glob in globs)


def is_covered(path: str, rules: Iterable[str]) -> bool:
    """Whether a path, a folder with everything below it, or a glob covers `path`."""
    plain = (rule.removeprefix("./") for rule in rules)
    return any(matches(path, rule) or (not has_wildcard(rule) and path.startswith(rule + "/")) for rule in plain)


def cover(globs: Iterable[str]) -> Callable[[str], bool]:
    """Return `matches_any` for many paths and globs: names are looked up, and only globs with wildcards are matched."""
    names = frozenset(globs)
    wide = tuple(glob for glob in names if has_wildcard(glob))
    return lambda path: path in names or matches_any(path, wide)


def _folded(path: str) -> str:
    if path.isascii():
        return path.lower()
    import unicodedata

    return unicodedata.normalize("NFC", path.casefold()).translate(_OVERLOOKED)


def protecting_rule(path: str, protected: Iterable[str], declared: Iterable[str] = ()) -> str | None:
    """Return the rule that forbids writing `path`, or None. Case is folded, so `.GIT` is `.git` on every system.

    `protected` comes from plan and configuration and has no exceptions; `declared` are the paths under Files.
    """
    folded = _folded(path)
    parts = folded.split("/")
    if parts[0] == OUTSIDE:
        return OUTSIDE
    if ".git" in parts:
        return ".git"
    always = (*ALWAYS_PROTECTED, *map(_folded, protected))
    found = next((rule for rule in always if matches(folded, rule) or is_below(folded, rule)), None)
    if found is not None or path in declared:
        return found
    return next((rule for rule in PROTECTED_UNLESS_DECLARED if matches(folded, _folded(rule))), None)


def folders_above(paths: Iterable[str]) -> set[str]:
    """Return the folders that contain any of these paths."""
    found = set[str]()
    for path in paths:
        folder = path
        while (folder := folder.rpartition("/")[0]) and folder not in found:
            found.add(folder)
    return found


def repository_of(path: str, repositories: Iterable[str]) -> str | None:
    """Return which of these repository folders contains a path, or None.

    For a glob, by its part before the first wildcard.
    """
    fixed = f"{before_wildcard(path)}/"
    return next((folder for folder in repositories if path == folder or fixed.startswith(f"{folder}/")), None)


def before_wildcard(path: str) -> str:
    """Return the folders of a path before its first name with a wildcard; the path itself if it has none."""
    names = path.rstrip("/").split("/")
    plain = next((n for n, name in enumerate(names) if has_wildcard(name)), len(names))
    return "/".join(names[:plain])


def below_rules(folders: Iterable[str]) -> tuple[str, ...]:
    """Return globs that match each folder and everything in it."""
    literal = (re.sub(r"[\[*]", r"[\g<0>]", re.sub(r"[{}]", "?", folder)) for folder in folders)
    return tuple(rule for folder in literal for rule in (folder, f"{folder}/**"))


NETWORK_FILE_SYSTEMS = frozenset(
    {"nfs", "nfs4", "cifs", "smb2", "smb3", "smbfs", "9p", "afs", "ncpfs", "ceph", "glusterfs", "lustre", "fuse"}
)

IGNORED_BY_GIT = "ignored by git"


def is_network_file_system(kind: str) -> bool:
    """Whether locks and fsync can be unreliable there. FUSE counts, because its backing store is unknown."""
    return kind in NETWORK_FILE_SYSTEMS or kind.startswith("fuse.")
