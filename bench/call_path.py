"""How much of idumb one attempt goes through: files entered, functions called, and switches between files.

    python -m bench.call_path [--files]

It runs a phase of one task in this process and watches `app/attempt/pipeline.py:make`, from the lock to the
checkpoint. The task runs a declared step, is proven by a check, and is committed. A switch is a call that enters
another file than the call before it; a return to the caller is none. Only functions of idumb in the main thread
count; comprehensions and lambdas belong to the function around them. `tests/meta/test_call_path.py` holds the
figures below limits.
"""

from __future__ import annotations

import argparse
import inspect
import json
import os
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any

import idumb
from bench import material
from idumb import lazy_dataclass, lazy_pattern
from idumb.app.attempt import pipeline
from idumb.cli import main

_PACKAGE = os.path.dirname(idumb.__file__) + os.sep
# They stand for functions of the standard library, which do not count either.
_STANDARD = frozenset({lazy_dataclass.__file__, lazy_pattern.__file__})
_EDITED = "d00/s00/f00000.py"
_TASK = f"""\
### T1-01: Append a line

- **Files:** modify `{_EDITED}`
- **Acceptance:**
  - [ ] The line is there — check: `grep -q more {_EDITED}`

```yaml steps
- {{tool: run, intent: append a line, arguments: {{argv: [sh, -c, "echo '# more' >> {_EDITED}"]}}}}
```
"""


@dataclass(frozen=True, slots=True)
class CallPath:
    """`calls` are in order: file below the package, and the name of the function."""

    calls: tuple[tuple[str, str], ...]

    @property
    def files(self) -> Counter[str]:
        """Calls by file."""
        return Counter(file for file, _ in self.calls)

    @property
    def functions(self) -> int:
        return len(set(self.calls))

    @property
    def switches(self) -> int:
        return sum(before[0] != after[0] for before, after in zip(self.calls, self.calls[1:], strict=False))


def measure() -> CallPath:
    """The attempt, run in a process of its own."""
    with tempfile.TemporaryDirectory(prefix="idumb-call-path-") as folder:
        place = material.project(f"{folder}/project", 50, 1, lambda *_: _TASK, "task")
        place.write(".idumb/config.yaml", "git:\n  commit: task\n")
        place.settle()
        note = f"{folder}/calls.json"
        argv = [
            sys.executable,
            "-m",
            "bench.call_path",
            "--note",
            note,
            "--approve",
            place.approval(),
        ]
        environment = {**place.env, "PYTHONPATH": str(Path(__file__).resolve().parents[1])}
        subprocess.run(argv, cwd=place.root, env=environment, check=True, capture_output=True)
        with open(note, encoding="utf-8") as stream:
            return CallPath(tuple((file, name) for file, name in json.load(stream)))


class _Watch:
    """Notes each call of a named function. A generator that continues is no new call."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, str]] = []
        self._generators: set[FrameType] = set()

    def __call__(self, frame: FrameType, event: str, _: Any) -> None:
        code = frame.f_code
        ours = event == "call" and code.co_filename.startswith(_PACKAGE) and not code.co_name.startswith("<")
        if not ours or code.co_filename in _STANDARD or frame in self._generators:
            return
        if code.co_flags & inspect.CO_GENERATOR:
            self._generators.add(frame)
        self.calls.append((code.co_filename.removeprefix(_PACKAGE), f"{code.co_qualname}:{code.co_firstlineno}"))


def _run_and_note(note: str, approval: str) -> int:
    """Run the phase in this process, and write the calls of its attempt to `note`."""
    watch, make = _Watch(), pipeline.make

    def watched(*arguments: Any, **named: Any) -> Any:
        sys.setprofile(watch)
        try:
            return make(*arguments, **named)
        finally:
            sys.setprofile(None)

    pipeline.make = watched
    code = main.run(["execute-phase", "1", "--approve", approval])
    with open(note, "w", encoding="utf-8") as stream:
        json.dump(watch.calls, stream)
    return code


def _options(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--files", action="store_true", help="list the files with their calls")
    parser.add_argument("--note", help=argparse.SUPPRESS)
    parser.add_argument("--approve", help=argparse.SUPPRESS)
    return parser.parse_args(arguments)


if __name__ == "__main__":
    options = _options(sys.argv[1:])
    if options.note:
        sys.exit(_run_and_note(options.note, options.approve))
    path = measure()
    print(f"files {len(path.files)}, functions {path.functions}, switches {path.switches}")
    for file, count in sorted(path.files.items()) if options.files else ():
        print(f"{count:6} {file}")
