"""R-PLAN-2: plans of other tools after accidents: cut, repeated and mixed. Reading them never fails or hangs."""

from __future__ import annotations

import random
import time
from collections.abc import Sequence

from idumb.domain.errors import InputError
from idumb.markdown.importers import registry
from idumb.markdown.plans import plan_parser
from tests.format import test_headed_tasks, test_importers, test_tagged_tasks

_PIECES = (
    "<task>", "</task>", "<task type='auto'>", "<action>", "</action>", "<tasks>", "</tasks>", "```", "~~~~", "---\n",
    "\n", "\r\n", "`", "<!--", "-->", "- [ ] T001 a\n", "### Task 1: a\n", "**Files:** ", "\ufeff", "\0",
    "<verify><automated>", "depends_on: [", "'", '"', "{", "x" * 300,
)  # fmt: skip
_OWN = (
    test_tagged_tasks.tagged(test_tagged_tasks.task(), test_tagged_tasks.task()),
    test_headed_tasks.FIRST_IDUMB,
    *(text for _, text in test_importers.SOURCES.values()),
)


def mutated(text: str, chance: random.Random, others: Sequence[str]) -> str:
    for _ in range(chance.randint(1, 6)):
        at, end = sorted((chance.randrange(len(text) + 1), chance.randrange(len(text) + 1)))
        other = chance.choice(others)
        start = chance.randrange(len(other) + 1)
        text = chance.choice(
            (
                text[:at] + text[end:],
                text[:at] + chance.choice(_PIECES) + text[at:],
                text[:at] + chance.choice(_PIECES) * 20 + text[at:],
                text[:end] + text[at : at + 2000] + text[end:],
                text[:at] + other[start : start + 2000] + text[at:],
            )
        )
    return text


def attempt(text: str) -> None:
    """Read a text in every way; an exception other than a refusal fails."""
    data = text.encode("utf-8", "surrogatepass")
    parsed = plan_parser.parse(data, ".planning/phases/03-a/03-01-PLAN.md")
    assert parsed.plan or parsed.findings
    for kind in (None, *registry.KINDS):
        try:
            registry.read("a/tasks.md", {"": text}, kind)
        except InputError:
            continue


def test_no_accident_makes_reading_fail() -> None:
    chance = random.Random(7)
    for _ in range(60):
        attempt(mutated(chance.choice(_OWN), chance, _OWN))


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
