"""The bytes that `git checkout` writes for files of a commit, where they differ from those that the commit holds.

Line endings, `ident`, encodings and filters are applied by git itself, with the settings of the user's repository.
Loaded only if attributes or settings ask for any of it.
"""

from __future__ import annotations

import os
import re
import secrets
import shutil
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from idumb import lazy_pattern
from idumb.git import git_program, guarded_files
from idumb.git.discover import Repository
from idumb.system.files import private_folders

TYPE_CHECKING = False
if TYPE_CHECKING:
    import pygit2

_LFS = "lfs"
_FILTER = lazy_pattern.compile(r"filter\.(.*)\.(?:smudge|process)\Z", re.DOTALL)
_PER_PROCESS = 500
_LINE_ENDINGS = ("core.autocrlf", "core.eol")
_CONVERTING = ("ident", "working-tree-encoding")
_TRUE = frozenset({"yes", "on", "1"})
_OWN_ATTRIBUTES = "idumb-attributes"
_UNLISTED = lazy_pattern.compile(r"\A[ \t]|\n|\r\Z")
"""Names that git does not read from a line after the name of an object as they are."""


class Settings(NamedTuple):
    """What outside the commit decides how its files are checked out.

    - `line_endings`: settings of git, such as `core.autocrlf`. `filters`: every setting of a filter.
    - `attributes`: the files of attributes that exist: the system's, then the user's. `info`: the repository's, or "".
    """

    line_endings: tuple[tuple[str, str], ...]
    filters: tuple[tuple[str, str], ...]
    attributes: tuple[str, ...]
    info: str

    @property
    def writes_crlf(self) -> bool:
        return not {("core.autocrlf", "true"), ("core.eol", "crlf")}.isdisjoint(self.line_endings)

    @property
    def is_local(self) -> bool:
        """Return whether any file may be checked out in another way than in a fresh clone."""
        return self.writes_crlf or bool(self.attributes or self.info)

    @property
    def programs(self) -> frozenset[str]:
        """Return the names of the filters that check files out; LFS has a store of its own."""
        matches = (_FILTER.match(name) for name, value in self.filters if value)
        return frozenset(match[1] for match in matches if match) - {_LFS}

    @property
    def words(self) -> str:
        """Return what may make the difference."""
        home = os.path.expanduser("~") + os.sep
        files = [f"~/{at.removeprefix(home)}" if at.startswith(home) else at for at in self.attributes]
        values = [f"{name}={value}" for name, value in self.line_endings] if self.writes_crlf else []
        filters = [f"filter {name}" for name in sorted(self.programs)]
        return ", ".join((*values, *files, *([".git/info/attributes"] if self.info else []), *filters))


def settings(place: Repository) -> Settings:
    """Return the settings of a repository."""
    files = guarded_files.of_repository(place)
    values = files.effective()
    chosen = ((name, values[name].lower()) for name in _LINE_ENDINGS if name in values)
    info = os.path.join(place.common_dir, "info", "attributes")
    return Settings(
        tuple((name, "true" if value in _TRUE else value) for name, value in chosen),
        tuple(sorted(row for row in values.items() if row[0].startswith("filter."))),
        tuple(filter(guarded_files.has_content, files.attributes_in_force)),
        info if guarded_files.has_content(info) else "",
    )


def put_into(git_dir: str, chosen: Settings) -> None:
    """Give a git folder the same line endings and attributes, so that git finds no file changed."""
    lines = [f"\t{name.removeprefix('core.')} = {value}\n" for name, value in chosen.line_endings]
    if chosen.attributes:
        own = os.path.join(git_dir, _OWN_ATTRIBUTES)
        shutil.copyfile(chosen.attributes[-1], own)
        escaped = own.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
        lines.append(f'\tattributesFile = "{escaped}"\n')
    if chosen.info:
        shutil.copyfile(chosen.info, os.path.join(git_dir, "info", "attributes"))
    with open(os.path.join(git_dir, "config"), "a", encoding="utf-8", errors="surrogateescape") as stream:
        stream.write("".join(("[core]\n", *lines)))


class Source(NamedTuple):
    """A repository that stores files, and the folder into which they are checked out.

    `index_file` is git's index for attributes of files that are not in the folder; it may be missing.
    """

    place: Repository
    folder: str
    index_file: str


File = tuple[str, str]
"""A path below the folder of its source, and the name of its object."""


def is_large(repository: pygit2.Repository, path: str) -> bool:
    """Return whether LFS stores a file. `repository` has its attributes."""
    return repository.get_attr(os.fsencode(path), "filter") == _LFS


def may_differ(repository: pygit2.Repository, path: str, chosen: Settings) -> bool:
    """Return whether a checkout may change the bytes of a file."""
    name = os.fsencode(path)
    if chosen.writes_crlf or any(repository.get_attr(name, attribute) for attribute in _CONVERTING):
        return True
    return repository.get_attr(name, "eol") == "crlf" or has_filter(repository, path, chosen)


def has_filter(repository: pygit2.Repository, path: str, chosen: Settings) -> bool:
    """Return whether a program of the user checks a file out."""
    return bool(chosen.programs) and repository.get_attr(os.fsencode(path), "filter") in chosen.programs


def as_checked_out(source: Source, files: Sequence[File], chosen: Settings) -> dict[str, bytes]:
    """Return path to the bytes that the user's git writes. If a filter fails, the file is omitted.

    Nothing is filtered if the settings are no longer the chosen ones: a check may have planted a program.
    """
    if settings(source.place) != chosen:
        return {}
    variables = {
        "GIT_DIR": source.place.git_dir,
        "GIT_COMMON_DIR": source.place.common_dir,
        "GIT_WORK_TREE": source.folder,
        "GIT_INDEX_FILE": source.index_file,
    }
    return _filtered(source.folder, files, [], variables)


def in_a_clone(
    source: Source, files: Sequence[File], scratch: str, line_endings: Sequence[tuple[str, str]] = ()
) -> dict[str, bytes]:
    """Return path to the bytes that a fresh clone has: the commit's own attributes count, and no program runs.

    `scratch` is a free path for a folder. `line_endings` are settings of git to apply all the same.
    """
    os.mkdir(scratch, 0o700)
    try:
        for name in ("objects", "refs"):
            os.mkdir(os.path.join(scratch, name))
        with open(os.path.join(scratch, "HEAD"), "w", encoding="ascii") as head:
            head.write("ref: refs/heads/main\n")
        variables = {
            "GIT_DIR": scratch,
            "GIT_OBJECT_DIRECTORY": os.path.join(source.place.common_dir, "objects"),
            "GIT_WORK_TREE": source.folder,
            "GIT_INDEX_FILE": source.index_file,
            "GIT_CONFIG_GLOBAL": os.devnull,
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_ATTR_NOSYSTEM": "1",
            "HOME": scratch,
            "XDG_CONFIG_HOME": scratch,
        }
        options = [word for name, value in line_endings for word in ("-c", f"{name}={value}")]
        return _filtered(source.folder, files, options, variables)
    finally:
        private_folders.remove_tree(scratch)


def _filtered(
    folder: str, files: Sequence[File], options: Sequence[str], variables: Mapping[str, str]
) -> dict[str, bytes]:
    by_path: dict[str, bytes] = {}
    for first in range(0, len(files), _PER_PROCESS):
        by_path |= _together(folder, files[first : first + _PER_PROCESS], options, variables)
    return by_path


def _together(
    folder: str, files: Sequence[File], options: Sequence[str], variables: Mapping[str, str]
) -> dict[str, bytes]:
    """Ask one process for many files; one for each whose name or filter does not allow that."""
    if unlisted := [file for file in files if _UNLISTED.search(file[0])]:
        by_path = _one_by_one(folder, unlisted, options, variables)
        rest = [file for file in files if file not in unlisted]
        return {**by_path, **(_together(folder, rest, options, variables) if rest else {})}
    if len(files) == 1:
        return _one_by_one(folder, files, options, variables)
    mark = secrets.token_hex(20).encode()  # git states the size before its filters, so it delimits nothing
    lines = b"".join(oid.encode() + b" " + os.fsencode(path) + b"\n" for path, oid in files)
    arguments = [*options, "cat-file", f"--batch={mark.decode()}", "--filters"]
    result = git_program.read(folder, arguments, lines, extra=variables)
    parts = result.out.split(mark + b"\n")[1:]
    if result.status != 0 or len(parts) != len(files):
        return _one_by_one(folder, files, options, variables)
    return {path: part[:-1] for (path, _), part in zip(files, parts, strict=True)}


def _one_by_one(
    folder: str, files: Sequence[File], options: Sequence[str], variables: Mapping[str, str]
) -> dict[str, bytes]:
    by_path = {}
    for path, oid in files:
        result = git_program.read(folder, [*options, "cat-file", "--filters", f"--path={path}", oid], extra=variables)
        if result.status == 0:
            by_path[path] = result.out
    return by_path
