"""T10, T12, T13, T21 and plans after accidents: nothing hostile is run or believed, honest work is not refused."""

from __future__ import annotations

import random
import time
from pathlib import Path
from typing import Any

import pytest

from idumb.cli import main
from idumb.domain.errors import InputError
from idumb.markdown.importers import registry
from idumb.markdown.plans import plan_parser
from tests.crash import programme
from tests.crash.programme import FOREIGN, OTHER, TRACEBACK, Tally
from tests.format import golden
from tests.hostile import cheating, fuzzing, honest_work, payloads
from tests.hostile import hostile_repositories as hostile
from tests.hostile.guards import GUARDS
from tests.hostile.honest import Honest, Work
from tests.hostile.hostile_repositories import Template
from tests.hostile.mutating import mutated
from tests.hostile.payloads import Payload, Scene
from tests.support import project as projects
from tests.support.answer import Answer
from tests.support.gitrepo import GitSandbox
from tests.support.project import Project


@pytest.mark.timeout(120)
def test_no_cheat_is_believed_and_honest_work_is_not_refused() -> None:
    """R-RUN-3."""
    programme.on_a_push(cheating.PROGRAMME)


@pytest.mark.nightly
def test_without_its_guard_a_cheat_is_believed(tmp_path: Path) -> None:
    """The harness detects an accepted cheat."""
    tally = Tally()
    guard = next(guard for guard in GUARDS if guard.name == "checks judge the commit")
    cheating.judge_without(guard, tmp_path / "case", tally)
    assert tally.failures == []


def test_each_guard_has_a_cheat_that_exists() -> None:
    assert len({guard.name for guard in GUARDS}) == len(GUARDS)
    for guard in GUARDS:
        assert cheating.find(guard.family, guard.cheat)
        assert guard.removed or guard.configuration


@pytest.mark.nightly
def test_a_refusal_is_a_failure(tmp_path: Path) -> None:
    tally = Tally()
    refused = Honest("shell", "undeclared", {"a": "a\n"}, (Work("create `b`", "echo b > b; echo c > c", "test -s b"),))
    honest_work.judge(refused, "guided", tmp_path / "case", tally)
    assert ["honest work was refused" in failure.words for failure in tally.failures] == [True]


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


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Template:
    return Template(tmp_path_factory.mktemp("hostile"))


def test_no_command_starts_the_program_that_checks_signatures(template: Template) -> None:
    """Git starts it while it shows history, if the repository asks for that. Few commands read history."""
    (payload,) = (payload for payload in hostile.ALL if payload.name == "gpg.program")
    hostile.case(template, payload, ("status", "show"), tally := Tally())
    assert tally.failures == []


def test_every_command_is_tried_or_is_meant_to_write() -> None:
    listed = [*hostile.READING, *hostile.WITHOUT_CONSENT, *hostile.WRITING, *hostile.ELSEWHERE]
    assert sorted(command for command in listed if " " not in command) == sorted(main.COMMANDS)


def _careless(scene: Scene, payload: Payload, command: str) -> Answer:
    scene.sh("git status")
    scene.repo.write("README.md", "written\n")
    return Answer(0, "\x1b[2J", "")


@pytest.mark.nightly
def test_the_harness_detects_a_careless_command(
    template: Template, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each of four faults is detected: git run unprotected, a write, control characters shown, work without consent."""
    monkeypatch.setattr(hostile, "ask", _careless)
    scene = hostile.planted(template, payloads.GIT[0])
    problems = list(hostile.problems(scene, payloads.GIT[0], ["resume"]))
    assert sorted(kind for kind, _ in problems) == sorted([OTHER, FOREIGN, FOREIGN, OTHER])


_OWN = (
    *(path.read_bytes().decode() for path in sorted(golden.DIALECTS.glob("*.md"))),
    *(text for _, text in golden.source_texts()),
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
    """R-PLAN-2: plans of other tools, cut, repeated and mixed."""
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
