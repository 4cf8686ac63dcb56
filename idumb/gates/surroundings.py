"""What the user has around a check, and a check in its own working tree has not: a home, TMPDIR, folders beside.

A run with a view of it shows whether a failed check needs it. A view is an overlay at another place: the check reads
what the user has, and what it writes there is discarded.
"""

from __future__ import annotations

import contextlib
import os
import re
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence

from idumb import lazy_pattern
from idumb.app.ports.checks import BESIDE, HOME, TMPDIR
from idumb.domain import check_lines
from idumb.domain.settings import CheckSettings
from idumb.system.files import private_folders
from idumb.system.processes import child_process, private_layers

_HOME = lazy_pattern.compile(r"(?:^|[\s\"'=:])~/|\$\{?HOME\b")
_TMPDIR = lazy_pattern.compile(r"\$\{?TMPDIR\b")
_ABOVE = lazy_pattern.compile(r"(?:\.\./)+[\w.-]*\w")
_WITH_HEAD = lazy_pattern.compile(r"\bgit\s+(?:status\b|diff-|diff\b[^;&|]*(?:\bHEAD\b|--cached\b|--staged\b))")
_REF = lazy_pattern.compile(
    r"^(?:fatal|error): (?:(?:ambiguous argument|bad revision|no such remote|invalid reference:|malformed object name"
    r"|not a valid object name:?) '?|')([^\s':]+)(?:'?$|': unknown revision|' does not appear to be a git repository)",
    re.IGNORECASE | re.MULTILINE,
)
_VARIABLE = lazy_pattern.compile(r"\$\{?([A-Za-z_][A-Za-z0-9_]{2,})|KeyError: '([A-Z][A-Z0-9_]{2,})'")
_NOT_MEANT = frozenset({"PWD", "OLDPWD", "SHLVL", "PPID", "UID"})
_LONGEST_PROBE = 20


def mentioned(command: str, output: str, environment: Mapping[str, str]) -> Iterator[str]:
    """Yield HOME and TMPDIR if the command or its output names them; `environment` is that of the check."""
    own = {name: environment.get(name, "") for name in (HOME, TMPDIR)}
    if os.path.dirname(own[HOME]) == os.path.dirname(own[TMPDIR]) and (_HOME.search(command) or own[HOME] in output):
        yield HOME
    if _TMPDIR.search(command) or (own[TMPDIR] and own[TMPDIR] in output):
        yield TMPDIR


def beside(words: str, user: str, root: str) -> Iterator[str]:
    """Yield paths above the user's working tree that `words` name and that `root` has not, such as `../NAME`."""
    for path in dict.fromkeys(_ABOVE.findall(words)):
        if os.path.exists(os.path.join(user, path)) and not os.path.lexists(os.path.join(root, path)):
            yield path


def compares_with_head(command: str) -> bool:
    """Return whether a command asks git for changes since HEAD, or for what only a refreshed index has."""
    return _WITH_HEAD.search(command) is not None


def missing_ref(output: str) -> str | None:
    """Return the branch, remote or revision that git says it does not know."""
    unknown = _REF.search(output)
    return None if unknown is None else unknown[1]


def unseen_variables(words: str, environment: Mapping[str, str]) -> list[str]:
    """Return the variables that a check uses and that the user has, but not the check."""
    used = dict.fromkeys(name for names in _VARIABLE.findall(words) for name in names if name)
    of_user = frozenset(child_process.variables()) - _NOT_MEANT - environment.keys()
    return [name for name in used if name in of_user]


def with_own_paths(output: str, root: str) -> str:
    """Return output that names the working tree `root` and what is beside it as a reader in his own tree would."""
    beside, name = os.path.split(root)
    if beside not in output:
        return output
    output = re.sub(rf"{re.escape(beside)}/{re.escape(name)}(/|(?![\w.-]))", lambda m: "" if m[1] else ".", output)
    return output.replace(f"{beside}/", BESIDE)


def can_show(name: str) -> bool:
    """Return whether a check can see it in a run: further up, there is no folder that idumb may write to."""
    return name.count(BESIDE) < 2


@contextlib.contextmanager
def opened(names: Sequence[str], private: str, user: str, root: str, home: str) -> Iterator[tuple[str, ...]]:
    """Make what a check in `root` needs to see `names` of the user; yield the arguments before those of the check.

    Its own folders are in `private`, and exist.
    """
    places = {HOME: (f"{private}/h", home), TMPDIR: (f"{private}/t", tempfile.gettempdir())}
    pairs = [places.get(name) or _places_beside(name, root, user) for name in names]
    folders = {place: folder for place, folder in pairs if os.path.isdir(folder)}
    beside = [place for place in folders if not place.startswith(f"{private}/")]
    try:
        for path in beside:
            os.mkdir(path, 0o700)
        yield private_layers.views(folders, f"{private}/v")
    finally:
        for path in beside:
            private_folders.remove_tree(path)


def _places_beside(name: str, root: str, user: str) -> tuple[str, str]:
    return os.path.normpath(os.path.join(root, name)), os.path.normpath(os.path.join(user, name))


def can_view(home: str, private: str) -> bool:
    """Return whether this machine can show a program the home at another place, in the new folder `private`."""
    if sys.platform != "linux":
        return False
    try:
        os.makedirs(f"{private}/h", mode=0o700)
        words = private_layers.views({f"{private}/h": home}, f"{private}/v")
        probe = child_process.run((*words, "/bin/sh", "-c", ":"), cwd="/", environment={}, timeout=_LONGEST_PROBE)
    except OSError:
        return False
    finally:
        with contextlib.suppress(OSError):
            private_folders.remove_tree(private)
    return probe.exit_code == 0


def advice(name: str, present: CheckSettings | None) -> str:
    """Return what is different, and what to do if the check needs it."""
    if name == HOME:
        return f"checks have a new, empty HOME. If this check needs yours, {fix(name, present)}"
    if name == TMPDIR:
        return f"checks have a new, empty TMPDIR. If this check needs a file in yours, {fix(name, present)}"
    return f"{name} is outside of the repository, so no clone has it. If this check needs it, {fix(name, present)}"


def may_need(name: str, present: CheckSettings | None) -> str:
    of_user = {HOME: "your HOME", TMPDIR: "a file in your TMPDIR"}
    return f"{of_user.get(name, name)}: {fix(name, present)}"


def fix(name: str, present: CheckSettings | None) -> str:
    if name == TMPDIR:
        return "let the check make the file itself"
    return check_lines.adding(present, {"home": "user"} if name == HOME else {"tree": "here"}, verb="add")
