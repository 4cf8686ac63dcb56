"""T21: honest work in sixty small projects is not refused, and the harness would see a refusal (R-RUN-3)."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.crash import programme
from tests.crash.programme import Tally
from tests.hostile import honest_work
from tests.hostile.honest import Honest, Work
from tests.hostile.honest_work import PROGRAMME


def test_honest_work_is_not_refused() -> None:
    programme.on_a_push(PROGRAMME)


@pytest.mark.nightly
def test_a_refusal_is_a_failure(tmp_path: Path) -> None:
    tally = Tally()
    refused = Honest("shell", "undeclared", {"a": "a\n"}, (Work("create `b`", "echo b > b; echo c > c", "test -s b"),))
    honest_work.judge(refused, "guided", tmp_path / "case", tally)
    assert ["honest work was refused" in failure.words for failure in tally.failures] == [True]
