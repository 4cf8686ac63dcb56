"""T13: commands in hostile repositories, and proof that the harness would see what they run (S1, S4)."""

from __future__ import annotations

from pathlib import Path

import pytest

from idumb.cli import main
from tests.crash import programme
from tests.crash.programme import FOREIGN, OTHER
from tests.hostile import hostile_repositories as hostile
from tests.hostile import payloads
from tests.hostile.hostile_repositories import Template
from tests.hostile.payloads import Payload, Scene
from tests.support.answer import Answer


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Template:
    return Template(tmp_path_factory.mktemp("hostile"))


@pytest.mark.timeout(120)
def test_no_program_that_a_repository_contains_is_run() -> None:
    """R-LOCK-2, R-LOCK-3: without consent; and nothing is changed. Then the payload is fired on purpose.

    F19, F21, F62: no link out, pipe, huge file or character that steers blocks or redirects a command.
    """
    programme.on_a_push(hostile.PROGRAMME)


@pytest.mark.parametrize(
    "commands",
    [("status", "show"), pytest.param(tuple(hostile.COMMANDS), marks=pytest.mark.nightly)],
    ids=["two that read history", "all"],
)
def test_no_command_starts_the_program_that_checks_signatures(template: Template, commands: tuple[str, ...]) -> None:
    """Git starts it while it shows history, if the repository asks for that. Few commands read history."""
    (payload,) = (payload for payload in hostile.ALL if payload.name == "gpg.program")
    scene = hostile.planted(template, payload)
    assert list(hostile.problems(scene, payload, commands)) == []
    assert payload.fire is not None
    payload.fire(scene)
    assert scene.marker.exists(), "it cannot go off, so it proves nothing"


def test_every_command_is_tried_or_is_meant_to_write() -> None:
    listed = [*hostile.READING, *hostile.WITHOUT_CONSENT, *hostile.WRITING, *hostile.ELSEWHERE]
    assert sorted(command for command in listed if " " not in command) == sorted(main.COMMANDS)


def _careless(scene: Scene, payload: Payload, command: str) -> Answer:
    scene.shell("git", "status")
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
