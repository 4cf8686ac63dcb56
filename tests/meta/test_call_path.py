"""How much code one attempt goes through: `python -m bench.call_path --files`.

The limits go down, and up only for a reason. They were 62 and 424 until programs were started by a guardian that waits
for them, which takes a module of its own and saves a fifth of the time of a small task, and 63 and 433 until loose
objects of git were read and verified by a module of their own: each object that is read is two switches.

A few switches depend on how many processes the machine runs: 588 to 590 were measured.
"""

from __future__ import annotations

from bench import call_path

FILES = 64
SWITCHES = 593


def test_an_attempt_enters_no_more_files_and_switches_than_before() -> None:
    path = call_path.measure()
    assert (len(path.files) <= FILES, path.switches <= SWITCHES) == (True, True), (
        f"{len(path.files)} files (at most {FILES}), {path.switches} switches (at most {SWITCHES})"
    )
