"""Notices of the end of a run and of its questions, sent as the user's own file says."""

from __future__ import annotations

import json
import os
import socket
from pathlib import Path
from typing import Any

from tests.cli.test_secrets import VALUE, built, made_by
from tests.support.plans import run
from tests.support.project import Project, making, task


def notify(home: Path, text: str) -> Path:
    place = Path(os.environ.get("XDG_CONFIG_HOME") or home / ".config") / "idumb" / "config.yaml"
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text(f"notify: {text}\n", encoding="utf-8")
    return place


def test_a_command_of_the_user_gets_a_notice_of_a_question_and_none_of_the_halt_after_it(
    project: Project, home: Path
) -> None:
    door = home / "door"
    os.mkfifo(door)
    notify(home, f'{{command: [sh, -c, "cat > {door}"]}}')
    project.plan([task("T1-01", files="create `a.txt`", criteria="  - [ ] it reads well — human\n", check="test -s a")])
    project.configure("builder: b\nbindings: {b: {adapter: command, argv: [sh, -c, 'echo a > a.txt']}}\n")
    assert run(project).code == 5
    (question,) = project.json("decisions").data["decisions"]
    told = json.loads(door.read_text(encoding="utf-8"))
    assert (told["kind"], told["words"], told["next"]) == ("decision", question["what"], "idumb decisions")
    assert told["repository"] == str(project.folder)


def test_a_run_does_not_wait_for_a_webhook_that_never_answers_and_tells_it_no_secret(
    project: Project, home: Path, monkeypatch: Any
) -> None:
    monkeypatch.setenv("API_TOKEN", VALUE)
    with socket.create_server(("127.0.0.1", 0)) as server:
        notify(home, f"{{webhook: 'http://127.0.0.1:{server.getsockname()[1]}/', on: [failed]}}")
        made_by(project, "echo a > a.py; echo b > $API_TOKEN.txt")
        project.plan([built()])
        assert run(project, "--on-deviation", "stop").code != 0
        connection, _ = server.accept()
        with connection:
            received = connection.recv(1 << 16)
            while b"}" not in received:
                received += connection.recv(1 << 16)
    assert b"POST / HTTP/1.1" in received
    assert VALUE.encode() not in received


def test_a_mistake_in_the_user_s_file_is_named_before_anything_runs(project: Project, home: Path) -> None:
    place = notify(home, "{webhok: 'https://example.org/'}")
    project.plan([making("T1-01", "a.txt")])
    refused = run(project)
    assert (refused.code, refused.error["code"]) == (3, "config.invalid")
    assert f"{place}:1" in refused.error["message"]
    assert not project.exists("a.txt")


def test_a_repository_cannot_set_what_is_the_user_s(project: Project) -> None:
    project.configure("notify: {command: [sh, -c, 'touch /tmp/x']}\n")
    project.plan([making("T1-01", "a.txt")])
    assert project.json("check-plan", "1").error["code"] == "config.invalid"
