"""What checks before the work leave behind: a record of the newest results, of bounded size."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path

from idumb.domain.proof import evidence
from idumb.domain.proof.evidence import Evidence
from idumb.gates.base_checks import BaseChecks


class Tree:
    def renew(self) -> None: ...


class Checks:
    """Checks that run nothing, and count how often they are asked."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def command(self, subject: str, text: str, command: str, *, timeout: float | None, tree: str | None) -> Evidence:
        self.asked.append(command)
        return Evidence(subject, text, evidence.PASSED, command, exit_code=0, tree=tree)

    def close(self) -> None: ...


def results(base: BaseChecks[Tree], checks: Checks, commands: Mapping[str, str]) -> Mapping[str, str]:
    def beside(_: Tree, __: str | None, ___: Callable[[int], None]) -> Checks:
        return checks

    base.start(beside, commands, tree="t", head=None, environment="e", timeout=1.0, delay=0.0)
    return base.results(wait=True)


def test_only_the_newest_results_are_remembered(tmp_path: Path) -> None:
    record, checks = tmp_path / "record", Checks()
    base = BaseChecks(Tree, record=str(record), run="r")
    commands = {f"c{number}": f"AC-{number}" for number in range(205)}
    assert set(results(base, checks, commands).values()) == {evidence.PASSED}
    assert len(json.loads(record.read_text(encoding="utf-8"))["results"]) == 200
    checks.asked.clear()
    later = BaseChecks(Tree, record=str(record), run="r")
    assert results(later, checks, {"c0": "AC-0", "c204": "AC-204"}) == {"c0": "passed", "c204": "passed"}
    assert checks.asked == ["c0"]
    base.close()
    later.close()
