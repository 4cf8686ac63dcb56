"""Plans that people wrote with GSD and the first iDumb, if they are on this machine: what is read, and what is refused.

`python -m tests.format.test_corpus_plans` prints the counts and the refused plans with their findings.
"""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from idumb.app.ports.planning import ParsedPlan
from idumb.domain.finding import errors
from idumb.markdown.plans import plan_parser
from idumb.markdown.syntax import writeback
from tests.support import corpus

READ, WITH_FINDINGS, REFUSED = "read", "read with findings", "refused"
_OPENED = re.compile(r"^[ \t]*<task[\s>]", re.MULTILINE)


def parsed(*kinds: str) -> Iterator[tuple[Path, bytes, ParsedPlan]]:
    for path, name in corpus.plans(*kinds):
        data = path.read_bytes()
        yield path, data, plan_parser.parse(data, name)


def result(plan: ParsedPlan) -> str:
    return REFUSED if plan.plan is None else WITH_FINDINGS if plan.findings else READ


@pytest.mark.skipif(not corpus.CORPUS.is_dir(), reason=f"no corpus at {corpus.CORPUS}")
def test_nine_of_ten_plans_of_other_people_are_read_as_they_are() -> None:
    """R-PLAN-2: with every task that their tags open; a refused plan names a line; no byte changes."""
    results: Counter[str] = Counter()
    for path, data, plan in parsed("gsd", "idumb"):
        results[result(plan)] += 1
        assert plan.plan or any(finding.line > 0 for finding in errors(plan.findings)), path
        assert writeback.edit(plan.text, []).encode() == data
        tasks = plan.plan.tasks if plan.plan else ()
        assert len({task.id for task in tasks}) == len(tasks), path
        opened = len(_OPENED.findall(plan.text))
        assert not opened or opened - 1 <= len(tasks) <= opened, path  # one may be an example in the text of a task
    assert results[REFUSED] * 10 <= results.total()


def main() -> None:
    counts: Counter[tuple[str, str, str]] = Counter()
    for kind in ("gsd", "idumb"):
        for path, _, plan in parsed(kind):
            counts[kind, plan.dialect, result(plan)] += 1
            if plan.plan is None:
                first = errors(plan.findings)[0]
                sys.stdout.write(f"{path.relative_to(corpus.CORPUS)}:{first.line}: {first.message} [{first.code}]\n")
    for (kind, dialect, words), count in sorted(counts.items()):
        sys.stdout.write(f"{count:5} {kind:8} {dialect:10} {words}\n")


if __name__ == "__main__":
    main()
