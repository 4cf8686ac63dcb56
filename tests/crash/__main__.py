"""Run programmes by hand: python -m tests.crash [ID ...] [--size N] [--seed S] [--jobs N] [--part K/N] [--write].

Without ids all of them. `--size` counts cases, `--sample` takes the size that `make nightly` has, otherwise it is the
release size. `--jobs` divides one programme among processes, where it can be divided, and `--part` makes one part of
it. `--write` records each result in results.json and makes docs/reliability.md anew.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from pathlib import Path

from tests import conftest
from tests.crash import programme as programmes
from tests.crash import record, registry


def _own_home() -> None:
    """As the tests do it: nothing of the user's home is read or written."""
    home = Path(tempfile.mkdtemp(prefix="idumb-home-"))
    (home / "gitconfig").touch()
    for name in conftest.dropped(os.environ):
        del os.environ[name]
    os.environ.update(conftest.home_environment(home))


def _say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def _part(text: str) -> tuple[int, int]:
    number, _, parts = text.partition("/")
    if not 1 <= int(number) <= int(parts):
        raise ValueError(text)
    return int(number) - 1, int(parts)


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.crash")
    parser.add_argument("ids", nargs="*", choices=[[], *registry.MODULES], default=[])
    parser.add_argument("--size", type=int)
    parser.add_argument("--sample", action="store_true")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--part", type=_part, default=(0, 1), help="one part of a programme that divides, as 3/12")
    parser.add_argument("--write", action="store_true")
    chosen = parser.parse_args(argv)
    if chosen.write and chosen.part != (0, 1):
        parser.error("one part is no result to be written")
    _own_home()
    failed = []
    for name in chosen.ids or registry.MODULES:
        programme = registry.load(name)
        size = chosen.size or (programme.sample if chosen.sample else programme.release)
        result = programmes.carry_out(programme, size=size, seed=chosen.seed, jobs=chosen.jobs, part=chosen.part)
        _say(programmes.report(result))
        if chosen.write:
            record.write(result)
        if result.failures:
            failed.append(name)
    if failed:
        _say(f"failed: {' '.join(failed)}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
