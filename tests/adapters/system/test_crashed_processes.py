"""Which ends of a process are crashes: what it left may be incomplete (R-ADAPT-3)."""

from __future__ import annotations

from typing import Any

from idumb.system.child_process import Finished
from tests.support.cases import every

NONE: Any = None


@every(
    "code, signal, timed_out, crashed",
    [
        (None, 9, False, True),
        (None, 11, False, True),
        (126, None, False, True),
        (127, None, False, True),
        (None, 9, True, False),
        (1, None, False, False),
        (2, None, False, False),
        (137, None, False, False),
    ],
)
def test_a_process_crashed_if_a_signal_ended_it_or_it_never_started(
    code: int | None, signal: int | None, *, timed_out: bool, crashed: bool
) -> None:
    """137 is the code of a program that reports the signal of another; it ended by itself."""
    assert Finished(code, signal, timed_out, NONE, None, 0.0).crashed == crashed
