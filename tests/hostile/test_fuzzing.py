"""T10: no file makes idumb fall over, dawdle or write (S10, F52), and the harness would see it."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

from idumb.markdown.plans import plan_parser
from tests.crash import programme
from tests.crash.programme import TRACEBACK, Tally
from tests.hostile import fuzzing
from tests.hostile.fuzzing import PROGRAMME
from tests.support import project as projects
from tests.support.gitrepo import GitSandbox
from tests.support.project import Project


@pytest.mark.timeout(120)
def test_any_file_content_gives_a_result_or_an_error() -> None:
    """R-PLAN-5, R-PLAN-7."""
    programme.on_a_push(PROGRAMME)


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Project:
    project = projects.create(GitSandbox.create(tmp_path_factory.mktemp("seeds") / "repo"))
    project.plan(fuzzing.TASKS)
    return project


UNCHANGED = {
    ".idumb/config.yaml": (fuzzing.CONFIGURATION, "1"),
    ".idumb/policy/tools.yaml": (fuzzing.POLICY, "1"),
    "deploy.yaml": (fuzzing.YAML_STEPS, "deploy.yaml"),
    "deploy.json": (fuzzing.JSON_STEPS, "deploy.json"),
}


@pytest.mark.parametrize("path", UNCHANGED)
def test_the_unmutated_input_is_valid(project: Project, path: str) -> None:
    """A file refused at once would never reach the code behind the parser."""
    text, phase = UNCHANGED[path]
    place = project.repo.write(path, text)
    answer = project.quick("check-plan", phase, "--json")
    place.unlink()
    assert answer.code == 0, answer.out


def _raising(*_: Any, **__: Any) -> Any:
    raise ValueError("planted")


@pytest.mark.nightly
def test_the_harness_detects_a_parser_that_raises(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bench, tally = fuzzing.Bench(tmp_path / "work"), Tally()
    monkeypatch.setattr(plan_parser, "parse", _raising)
    fuzzing.carry_out(fuzzing.made_up(bench, random.Random(1), ("",)), bench, tally, "planted")
    assert {failure.kind for failure in tally.failures} == {TRACEBACK}
