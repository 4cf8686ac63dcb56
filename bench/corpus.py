"""Plan files that people wrote: all of a corpus in one process, beside the bare line scanner on the same texts.

The corpus is not part of the project: `PLAN_CORPUS` names it, or it is at `../shared/corpus`.
"""

from __future__ import annotations

import gc
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from bench import floors, measure
from bench.measure import Effort, Figure

_GOAL = 10.0
# Kinds of files that idumb reads as they are; the files of all other kinds are imported.
_READ_AS_THEY_ARE = frozenset({"gsd", "idumb"})
_ROUNDS = 5

File = tuple[str, str, bytes]
"""The kind of a file, its path in its own repository, and its bytes."""


def corpus(_effort: Effort) -> Iterator[Figure]:
    """The same goal as for one plan: real files cost less than ten times a scan of their lines.

    Files are in memory. All modules are loaded and one warm-up round has passed before the first of at least five
    rounds. Times are CPU times of this process; the collector is off, as in the commands that parse and exit.

    - "check-plan": every file goes through the one parser, as for `idumb check-plan PATH`: its bytes are decoded, its
      dialect is recognized, and it is read completely into a plan or findings, or named as a file of another tool.
    - "read or imported": the files of the kinds gsd and idumb go through the one parser too, plans or not. Every other
      file goes through `idumb import PATH` up to the plan that it found: its bytes are decoded, its format is
      recognized, and all of its tasks are read; a file in no known format is refused. Only the file itself is given,
      without the files beside it, and nothing is written.
    - The floor scans the decoded text of every file with `floors.scan_lines`.
    """
    folder = Path(os.environ.get("PLAN_CORPUS") or Path(__file__).resolve().parents[2] / "shared" / "corpus")
    files = list(_files(folder))
    if not files:
        yield Figure(5, "files that people wrote", "bare line scanner", None, _GOAL, 0, note="there is no corpus here")
        return
    texts = [data.decode("utf-8", "replace") for _, _, data in files]
    cases: dict[str, measure.Case] = {
        "floor": lambda: _seconds(lambda: _scan(texts)),
        "check": lambda: _seconds(lambda: _check(files)),
        "import": lambda: _seconds(lambda: _read_or_import(files)),
    }
    times = measure.turns(cases, _ROUNDS, before=_uncollected)
    gc.enable()
    for what, name in (("check-plan", "check"), ("read or imported", "import")):
        value = measure.ratio(times, name, "floor")
        yield Figure(5, f"{len(files):,} files that people wrote, {what}", "bare line scanner", value, _GOAL, _ROUNDS)


def _files(folder: Path) -> Iterator[File]:
    """Yield the files at KIND/REPOSITORY/PATH."""
    for path in sorted(folder.glob("*/*/**/*")):
        if path.is_file():
            kind, _, *inside = path.relative_to(folder).parts
            yield kind, "/".join(inside), path.read_bytes()


def _scan(texts: list[str]) -> None:
    for text in texts:
        floors.scan_lines(text)


def _check(files: list[File]) -> None:
    from idumb.markdown.plans import plan_parser

    for _, path, data in files:
        plan_parser.parse(data, path)


def _read_or_import(files: list[File]) -> None:
    from idumb.domain.errors import InputError
    from idumb.markdown.importers import registry
    from idumb.markdown.plans import plan_parser

    for kind, path, data in files:
        if kind in _READ_AS_THEY_ARE:
            plan_parser.parse(data, path)
            continue
        try:
            registry.read(path, {"": data.decode("utf-8", "surrogateescape")}, None)
        except InputError:
            continue


def _seconds(case: Callable[[], None]) -> float:
    start = time.process_time()
    case()
    return time.process_time() - start


def _uncollected() -> None:
    gc.enable()
    gc.collect()
    gc.disable()
