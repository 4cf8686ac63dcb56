"""R-PLAN-2: plans of other tools after accidents: cut, repeated and mixed. Reading them never fails or hangs."""

from __future__ import annotations

import random
import time

import pytest

from idumb.domain.errors import InputError
from idumb.markdown.importers import registry
from idumb.markdown.plans import plan_parser
from tests.format import test_headed_tasks, test_importers, test_tagged_tasks
from tests.hostile.mutating import mutated

_OWN = (
    test_tagged_tasks.tagged(test_tagged_tasks.task(), test_tagged_tasks.task()),
    test_headed_tasks.FIRST_IDUMB,
    *(text for _, text in test_importers.SOURCES.values()),
)


def attempt(data: bytes) -> None:
    """Read a text in every way; an exception other than a refusal fails."""
    parsed = plan_parser.parse(data, ".planning/phases/03-a/03-01-PLAN.md")
    assert parsed.plan or parsed.findings
    for kind in (None, *registry.KINDS):
        try:
            registry.read("a/tasks.md", {"": data.decode(errors="replace")}, kind)
        except InputError:
            continue


@pytest.mark.nightly
def test_no_accident_makes_reading_fail() -> None:
    chance = random.Random(7)
    for _ in range(60):
        attempt(mutated(_OWN, chance))


def test_repetition_does_not_hang_the_reader() -> None:
    """In processor time with a wide margin: what grows with the square of the text would take minutes."""
    for piece in (
        "<action>\n",
        "<task>\n",
        "<task><name>\n",
        "</action>\n",
        "- [ ] a\n",
        "**Files:** a\n",
        "`",
        "```\n",
    ):
        text = "<task>\n" + piece * 20_000
        started = time.process_time()
        plan_parser.parse(text.encode(), "p")
        assert time.process_time() - started < 20, piece
