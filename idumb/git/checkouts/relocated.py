"""What must not lead from a checkout back into the user's working tree: Python environments, settings, variables.

A copied environment names the folder that it was made in, and its editable installs name the user's sources. Other
environments, outside the working tree, can have such installs too: PYTHONPATH leads these to the checkout. Files such
as `.env` name a database or a folder of data.
"""

from __future__ import annotations

import ast
import contextlib
import glob
import os
import re
from collections.abc import Iterable, Iterator
from typing import NoReturn
from urllib.parse import quote

from idumb.domain.errors import Refusal
from idumb.domain.paths import is_below
from idumb.git import guarded_files

_VENV = "/pyvenv.cfg"
_FIXED = ("/conda-meta/history", "/CMakeCache.txt", "/meson-private/coredata.dat")
"""Conda writes the path of an environment also into programs and libraries, where it cannot be changed. What CMake and
Meson configured builds the sources of the tree in which they did so."""
YARN, _ABOVE = ("/.pnp.cjs", "/.pnp.data.json"), b'"packageLocation": "../'
"""Yarn names each package by its path from there, also those in a cache outside the tree."""
LARGEST = 1 << 20
_SITE = r"(?:lib(?:64)?/python[^/]*|Lib)/site-packages/"
SITES = ("lib/python*/site-packages", "lib/python*/dist-packages", "Lib/site-packages")
_STARTUP = re.compile(
    rf"pyvenv\.cfg|(?:bin|Scripts)/[^/]+|share/jupyter/kernels/[^/]+/kernel\.json|"
    rf"{_SITE}(?:_[^/]*\.py|[^/]+\.(?:pth|egg-link)|[^/]+\.dist-info/direct_url\.json)"
)
_BYTECODE = re.compile(rf"{_SITE}__pycache__/_[^/]*")
_ABSOLUTE = rb"(?<![\w.\-/])/(?!/)[^\s'\"`:;,<>(){}\[\]|&$\\]+"
_FINDER = re.compile(r"import\s+(\w+)")
_MAPPING = re.compile(r"^MAPPING\b[^=]*=\s*(\{.*?\})\s*$", re.MULTILINE | re.DOTALL)
_LONGEST_FIRST_LINE = 127
_PYTHON = re.compile(rb"#!([^\n]*/python[\w.]*)[ \t]*\r?\n")
_THROUGH_SHELL = b"#!/bin/sh\n'''exec' \"%b\" \"$0\" \"$@\"\n' '''\n"


class Environments:
    """The environments among these paths of the user's working tree.

    Refusal `checkout.leads-back` for one of Conda, and for a build that CMake or Meson configured, except in packages.
    """

    def __init__(self, user: str, paths: Iterable[str]) -> None:
        folders = []
        for path in paths:
            if f"/{path}".endswith(_FIXED) and "node_modules" not in path.split("/"):
                refuse(os.path.join(user, path))
            if path.endswith(_VENV):
                folders.append(path.removesuffix(_VENV) + "/")
        self._folders = tuple(folders)

    def is_startup(self, path: str) -> bool:
        """Return whether a file tells programs where things are."""
        return self._matches(_STARTUP, path)

    def is_bytecode(self, path: str) -> bool:
        """Return whether a file was compiled from a startup file, and so may have the user's paths."""
        return self._matches(_BYTECODE, path)

    def _matches(self, pattern: re.Pattern[str], path: str) -> bool:
        return path.startswith(self._folders) and any(
            path.startswith(folder) and pattern.fullmatch(path, len(folder)) for folder in self._folders
        )


def relocate(data: bytes, user: str, root: str, name: str) -> bytes:
    """Return the content of a file that has the paths of the checkout `root` instead of those below `user`.

    `name` is for Refusal `checkout.leads-back`: of a program that is not text, nothing can be changed.
    """
    if name.endswith(YARN) and _ABOVE in data:
        refuse(name)
    plain, quoted = (re.escape(os.fsencode(path)) for path in (user, quote(user)))
    named = re.compile(rb"(?<![\w.\-])(?:(%b)|(%b))(?![\w.\-])|%b" % (plain, quoted, _ABSOLUTE))
    if b"\0" in data:
        if any(match.lastindex for match in named.finditer(data)):
            refuse(name)
        return data

    def moved(match: re.Match[bytes]) -> bytes:
        if match.lastindex is None:
            return _by_real_path(match[0], user, root)
        return os.fsencode(root if match[1] else quote(root))

    result = named.sub(moved, data)
    return data if result == data else _with_usable_first_line(result)


def _by_real_path(path: bytes, user: str, root: str) -> bytes:
    """Return the path in the checkout if a path leads to the user's working tree by another name."""
    place = os.fsdecode(path)
    for real in (
        os.path.join(os.path.realpath(os.path.dirname(place)), os.path.basename(place)),
        os.path.realpath(place),
    ):
        if is_below(real, user):
            return os.fsencode(root + real[len(user) :])
    return path


def _with_usable_first_line(data: bytes) -> bytes:
    """Start a script through a shell, as pip does, if the system cannot read the path in its first line."""
    line = _PYTHON.match(data)
    if line is None or (len(line[0]) <= _LONGEST_FIRST_LINE and b" " not in line[1]):
        return data
    return _THROUGH_SHELL % line[1] + data[line.end() :]


def refuse(name: str) -> NoReturn:
    raise Refusal(
        "checkout.leads-back",
        f"{name} leads programs from the checkout back into your working tree, and idumb cannot change that.",
        hint="Install what the checks need by checkout.prepare in .idumb/config.yaml instead of providing a copy",
        details={"path": name},
    )


def python_path(user: str, root: str, sites: Iterable[str], copied: Iterable[str]) -> tuple[str, ...]:
    """Return the folders of the checkout that Python must search before the editable installs of other environments.

    Those are the environments whose packages are in `sites`, and that are not below a path which is `copied`. Refusal
    `checkout.leads-back`.
    """
    folders, own = dict[str, None](), tuple(f"{user}/{path}/" for path in copied)
    for site in (site for site in sites if not site.startswith(own)):
        for path in sorted(glob.glob(f"{glob.escape(site)}/*.pth")):
            for line in _lines(path):
                folders |= dict.fromkeys(_led_to(user, site, line, path))
    return tuple(os.path.normpath(root + folder[len(user) :]) for folder in folders)


def sites(search_path: str) -> tuple[str, ...]:
    """Return the folders of packages of the environments whose programs are in a folder of `search_path`."""
    found = dict[str, None]()
    for folder in filter(None, search_path.split(os.pathsep)):
        above = glob.escape(os.path.realpath(os.path.dirname(folder.rstrip("/"))))
        prefix = f"{above}/versions/*" if folder.endswith("/shims") else above
        for pattern in SITES:
            found |= dict.fromkeys(map(os.path.realpath, glob.glob(f"{prefix}/{pattern}")))
    return tuple(found)


def _led_to(user: str, site: str, line: str, path: str) -> Iterator[str]:
    """Yield the real folders of the user's working tree that a line of a file *.pth puts on Python's path."""
    if not line.startswith(("import ", "import\t")):
        real = os.path.realpath(os.path.join(site, line))
        if is_below(real, user) and os.path.isdir(real):
            yield real
        return
    module = _FINDER.match(line)
    text = "\n".join((line, *_lines(os.path.join(site, f"{module[1]}.py")))) if module else line
    mapping = _MAPPING.search(text)
    if mapping is None:
        if f"{user}/" in text:
            refuse(path)
        return
    with contextlib.suppress(ValueError, SyntaxError):
        for name, place in ast.literal_eval(mapping[1]).items():
            real, package = os.path.realpath(place), name.replace(".", "/")
            if real.startswith(f"{user}/"):
                if not real.removesuffix(".py").endswith(f"/{package}"):
                    refuse(path)
                yield real.removesuffix(".py").removesuffix(f"/{package}")


def _lines(path: str) -> list[str]:
    lines = guarded_files.content(path).decode("utf-8", "surrogateescape").splitlines()
    return [line.strip() for line in lines if line.strip()]
