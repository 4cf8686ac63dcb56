"""What a step of a plan can change, and the files that it must produce: the proof of steps that write files."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping

from msgspec import Struct

from idumb.domain import whole_numbers
from idumb.domain.plans.plan import FileClaim, Step

_HUNK = re.compile(r"@@ -\d+(?:,(\d+))? \+\d+(?:,(\d+))? @@")
_NAMING = ("--- ", "+++ ", "rename from ", "rename to ", "copy to ")
_ESCAPE = re.compile(rb"\\([0-7]{1,3}|.)", re.DOTALL)
_LETTERS = {b"n": b"\n", b"t": b"\t", b"r": b"\r", b"a": b"\a", b"b": b"\b", b"f": b"\f", b"v": b"\v"}


def claims(step: Step) -> tuple[FileClaim, ...] | None:
    """Return what a step can change, from its arguments and scope; None if a patch does not name it."""
    if step.tool == "make_directory":
        return ()
    if step.tool == "move_file":
        written: tuple[str, ...] | None = (step.arguments["from"], step.arguments["to"])
    elif step.tool == "run":
        written = step.scope
    elif step.tool == "apply_patch":
        written = patched(step.arguments["patch"])
    else:
        written = (step.arguments["path"],)
    return None if written is None else tuple(FileClaim("change", path) for path in dict.fromkeys(written))


def patched(patch: str) -> tuple[str, ...] | None:
    """Return the paths that a git patch names, in order; None if it names none."""
    return tuple(dict.fromkeys(_names(patch))) or None


def _names(patch: str) -> Iterator[str]:
    old = new = 0  # remaining lines of the hunk, which can look like headers
    for line in patch.split("\n"):
        if old > 0 or new > 0:
            old -= line[:1] in {" ", "-", ""}
            new -= line[:1] in {" ", "+", ""}
        elif (hunk := _HUNK.match(line)) is not None:
            old, new = (
                whole_numbers.LARGEST if (n := whole_numbers.parse(lines or "1")) is None else n
                for lines in hunk.groups()
            )
        else:
            yield from _header(line.removesuffix("\r"))


def _header(line: str) -> Iterator[str]:
    if line.startswith("diff --git "):
        # both names are equal unless another line names them
        rest = line.removeprefix("diff --git ")
        half = len(rest) // 2
        old_name, new_name = _bare(rest[:half]), _bare(rest[half + 1 :])
        if old_name is not None and old_name == new_name:
            yield old_name
        return
    prefix = next((p for p in _NAMING if line.startswith(p)), None)
    if prefix is None:
        return
    name = line.removeprefix(prefix)
    path = _bare(name) if prefix in _NAMING[:2] else _unquoted(name)
    if path is not None:
        yield path


def _bare(name: str) -> str | None:
    """Return `src/x.py` for `a/src/x.py`, also quoted; None for other names."""
    name = _unquoted(name.partition("\t")[0])
    _, slash, path = name.partition("/")
    return path if slash and path and name != "/dev/null" else None


def _unquoted(name: str) -> str:
    """Decode a quoted name: git writes special characters as octal bytes."""
    if len(name) < 2 or name[0] != '"' or name[-1] != '"':
        return name
    return _ESCAPE.sub(_byte, name[1:-1].encode("utf-8", "surrogateescape")).decode("utf-8", "surrogateescape")


def _byte(match: re.Match[bytes]) -> bytes:
    escaped = match[1]
    return bytes([int(escaped, 8) & 255]) if escaped[:1] in b"01234567" else _LETTERS.get(escaped, escaped)


class Expected(Struct, frozen=True):
    """`data` None: the file must be gone. `executable` None: the mode is not checked."""

    data: bytes | None
    executable: bool | None = None


def expected(step: Step, before: Callable[[str], bytes | None]) -> Mapping[str, Expected]:
    """Return what each path must be after the step; empty if only the step's own result proves it.

    `before` returns a file's bytes in the tree before the step, None if there is none.
    """
    arguments = step.arguments
    if step.tool == "write_file":
        mode = arguments.get("mode")
        executable = None if mode is None else str(mode).endswith("755")
        return {arguments["path"]: Expected(written(arguments), executable)}
    if step.tool == "edit_file":
        data = before(arguments["path"])
        changed = None if data is None else data.replace(_bytes(arguments["find"]), _bytes(arguments["replace"]))
        return {arguments["path"]: Expected(changed)}
    if step.tool == "delete_file":
        return {arguments["path"]: Expected(None)}
    if step.tool == "move_file":
        source, target = arguments["from"], arguments["to"]
        removal = {} if source == target else {source: Expected(None)}
        return {**removal, target: Expected(before(source))}
    return {}


def written(arguments: Mapping[str, object]) -> bytes:
    """Return the bytes of a `write_file` step. Raises ValueError for invalid base64."""
    packed = arguments.get("content_base64")
    if isinstance(packed, str):
        import base64  # noqa: PLC0415 (few steps need it)

        return base64.b64decode("".join(packed.split()), validate=True)
    return _bytes(str(arguments.get("content", "")))


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")
