"""How much code one attempt goes through. The limits only ever go down: `python -m bench.call_path --files`.

A few switches depend on how many processes the machine runs: 419 to 421 were measured.
"""

from __future__ import annotations

from bench import call_path

FILES = 62
SWITCHES = 424


def test_an_attempt_enters_no_more_files_and_switches_than_before() -> None:
    path = call_path.measure()
    assert (len(path.files) <= FILES, path.switches <= SWITCHES) == (True, True), (
        f"{len(path.files)} files (at most {FILES}), {path.switches} switches (at most {SWITCHES})"
    )
