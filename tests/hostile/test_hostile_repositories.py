"""T13: a sample of commands in every hostile repository, and proof that each of them would go off (S1, S4)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from idumb.cli import main
from tests.crash.programme import FOREIGN, OTHER
from tests.hostile import hostile_repositories as hostile
from tests.hostile import payloads, unpacked
from tests.hostile.hostile_repositories import Template
from tests.hostile.payloads import Payload, Scene
from tests.hostile.unpacked import Harm
from tests.support.answer import Answer
from tests.support.warm import Warm

pytestmark = pytest.mark.slow

# One of each kind; the programme takes them all.
HARMS = [*unpacked.HARMS[:-3:3], *unpacked.HARMS[-3:]]


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Template:
    return Template(tmp_path_factory.mktemp("hostile"))


@pytest.fixture(scope="module")
def warm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Warm]:
    with Warm(tmp_path_factory.mktemp("answers")) as warm_commands:
        yield warm_commands


@pytest.mark.parametrize("payload", hostile.ALL, ids=lambda payload: payload.name)
def test_no_program_that_a_repository_contains_is_run(payload: Payload, template: Template, warm: Warm) -> None:
    """R-LOCK-2, R-LOCK-3: without consent; and nothing is changed. Then the payload is fired on purpose."""
    scene = hostile.planted(template, payload)
    commands = hostile.chosen(hostile.ALL.index(payload), 3 if payload.alone else 5)
    assert list(hostile.problems(warm, scene, payload, commands)) == []
    payload.fire(scene)
    assert scene.marker.exists(), "it cannot go off, so it proves nothing"


def test_no_command_starts_the_program_that_checks_signatures(template: Template, warm: Warm) -> None:
    """Git starts it while it shows history, if the repository asks for that. Few commands read history."""
    (payload,) = (payload for payload in hostile.ALL if payload.name == "gpg.program")
    scene = hostile.planted(template, payload)
    assert list(hostile.problems(warm, scene, payload, list(hostile.COMMANDS))) == []
    payload.fire(scene)
    assert scene.marker.exists(), "it cannot go off, so it proves nothing"


@pytest.mark.parametrize("harm", HARMS, ids=lambda harm: harm.name)
def test_no_special_file_or_link_in_a_repository_blocks_or_redirects(
    harm: Harm, template: Template, warm: Warm
) -> None:
    """F19, F21, F62: links out, pipes, huge files, characters that steer; within bounded time and memory."""
    scene = hostile.planted(template, harm)
    commands = ["status", "check-plan", "doctor", "execute-phase"]
    assert list(hostile.problems(warm, scene, harm, commands)) == []


def test_every_command_is_tried_or_is_meant_to_write() -> None:
    listed = [*hostile.READING, *hostile.WITHOUT_CONSENT, *hostile.WRITING, *hostile.ELSEWHERE]
    assert sorted(listed) == sorted(main.COMMANDS)


def test_the_sample_has_every_command_several_times() -> None:
    commands = [command for number in range(len(hostile.ALL)) for command in hostile.chosen(number, 5)]
    assert min(commands.count(command) for command in hostile.COMMANDS) >= 3


def _careless(warm: Warm, scene: Scene, payload: Payload | Harm, command: str) -> Answer:
    scene.shell("git", "status")
    scene.repo.write("README.md", "written\n")
    return Answer(0, "\x1b[2J", "")


def test_the_harness_detects_a_careless_command(
    template: Template, warm: Warm, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each of four faults is detected: git run unprotected, a write, control characters shown, work without consent."""
    monkeypatch.setattr(hostile, "ask", _careless)
    scene = hostile.planted(template, payloads.GIT[0])
    problems = list(hostile.problems(warm, scene, payloads.GIT[0], ["resume"]))
    assert sorted(kind for kind, _ in problems) == sorted([OTHER, FOREIGN, FOREIGN, OTHER])
