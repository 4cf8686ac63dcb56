"""T10: no file makes idumb fall over, dawdle or write (S10, F52), and the harness would see it."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from idumb.app.review import check_plan
from idumb.markdown.plans import plan_parser
from idumb.markdown.settings import configuration
from tests.crash import programme
from tests.crash.programme import OTHER, SLOW, TRACEBACK, Tally
from tests.hostile import fuzzing
from tests.hostile.fuzzing import PROGRAMME
from tests.hostile.mutating import mutated
from tests.support import project as projects
from tests.support.answer import Answer
from tests.support.gitrepo import GitSandbox
from tests.support.project import Project


@pytest.mark.timeout(120)
def test_any_file_content_gives_a_result_or_an_error() -> None:
    """R-PLAN-5, R-PLAN-7."""
    programme.on_a_push(PROGRAMME)


def test_a_seed_and_a_number_reproduce_a_case(tmp_path: Path) -> None:
    sources = ("# A plan\n\nIt has words.\n",)
    results = {mutated(sources, random.Random("3/17")) for _ in range(3)}
    assert len(results) == 1


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


def _slow(given: Callable[..., Any]) -> Callable[..., Any]:
    def slow(*arguments: Any, **more: Any) -> Any:
        until = time.process_time() + fuzzing.SECONDS + 0.05
        while time.process_time() < until:
            pass
        return given(*arguments, **more)

    return slow


def _writing(given: Callable[..., Any]) -> Callable[..., Any]:
    def writing(services: Any, *arguments: Any, **more: Any) -> Any:
        Path(services.root, ".git", "index").write_bytes(b"")
        return given(services, *arguments, **more)

    return writing


PLANTED: dict[str, tuple[Any, str, Callable[[Callable[..., Any]], Callable[..., Any]], str]] = {
    "a parser that raises": (plan_parser, "parse", lambda _: _raising, TRACEBACK),
    "a configuration that raises": (configuration, "load", lambda _: _raising, TRACEBACK),
    "an answer of more than a second": (plan_parser, "parse", _slow, SLOW),
    "a check that writes": (check_plan, "check", _writing, OTHER),
}


@pytest.mark.nightly
@pytest.mark.parametrize("fault", PLANTED)
def test_the_harness_detects(fault: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    module, name, fake, kind = PLANTED[fault]
    bench, tally = fuzzing.Bench(tmp_path / "work"), Tally()
    monkeypatch.setattr(module, name, fake(getattr(module, name)))
    case = fuzzing.made_up(bench, random.Random(1), ("",))
    fuzzing.carry_out(case, bench, tally, "planted")
    assert {failure.kind for failure in tally.failures} == {kind}


def test_the_command_prints_one_complete_answer(tmp_path: Path) -> None:
    """One object and no traceback, in a separate process; the command changes nothing."""
    bench, sources = fuzzing.Bench(tmp_path), fuzzing.material()
    for number, kind in enumerate((fuzzing.plan, fuzzing.made_up, fuzzing.configuration)):
        case = kind(bench, random.Random(f"cli/{number}"), sources)
        was = case.path.read_bytes()
        case.path.write_bytes(case.data)
        before = fuzzing.everything(tmp_path)
        _require_answer(case.project.json("check-plan", "1"))
        assert fuzzing.everything(tmp_path) == before
        case.path.write_bytes(was)


def _require_answer(answer: Answer) -> None:
    assert answer.code in {0, 3, 4}, answer
    assert answer.object["command"] == "check-plan"
    if answer.code:
        assert answer.error["code"] != "internal"
