"""The files that a step must produce, computed from the tree before it: the proof of steps that write files."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from idumb.domain.plans.plan import Step
from idumb.lazy_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Expected:
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
