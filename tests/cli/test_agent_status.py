"""Status that a working agent reports: shown at once, bounded, and never trusted."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path

import jsonschema
import pytest

from idumb.domain.agent import STATES
from tests.support import project as projects
from tests.support.gitrepo import GitSandbox
from tests.support.project import Project, task

AGENT = """\
import json, os, pathlib, sys, time
place, home = os.environ["IDUMB_STATE_FILE"], pathlib.Path(os.environ["HOME"])

def say(**said):
    with open(place + ".new", "w") as file:
        json.dump(said, file)
    os.replace(place + ".new", place)

def wait_for(name):
    while not (home / name).exists():
        time.sleep(0.02)

def work():
    pathlib.Path("a.txt").write_text("done")

"""
TOLD = "attempt.told"
SCHEMA = json.loads((Path(__file__).parents[2] / "docs/schemas/status.json").read_text(encoding="utf-8"))


@pytest.fixture
def project(sandbox: GitSandbox) -> Project:
    return projects.create(sandbox)


def built_by(project: Project, home: Path, script: str, *, adapter: str = "command", settings: str = "") -> None:
    """A project with one task, whose agent follows a script."""
    (home / "agent.py").write_text(AGENT + script, encoding="utf-8")
    argv = json.dumps(["python3", str(home / "agent.py")])
    project.configure(f"builder: coder\nbindings:\n  coder: {{adapter: {adapter}, argv: {argv}}}\n{settings}")
    project.plan([task("T1-01", files="create `a.txt`", check="grep -q done a.txt")])


def test_a_working_agent_s_status_is_reported_at_once_and_shown_by_other_commands(project: Project, home: Path) -> None:
    """R-ADAPT-2: in the events and by `status` in another terminal, until the attempt has ended."""
    script = """
say(state="working", message="reads the code")
wait_for("one")
say(state="waiting", message="log in at\\n the \\x1b[31mbrowser")
wait_for("two")
work()
"""
    built_by(project, home, script)
    approval = project.approval()
    with project.running("execute-phase", "1", "--approve", approval) as run:
        first = run.wait_for(TOLD, "T1-01")
        assert first["payload"] == {"role": "builder", "state": "working", "message": "reads the code", "number": 1}
        (home / "one").touch()
        second = run.wait_for(TOLD, "T1-01")
        assert (second["payload"]["state"], second["payload"]["number"]) == ("waiting", 2)
        shown = project.idumb("status")
        assert f"T1-01: its builder reported waiting at {second['at']}: log in at the \\x1b[31mbrowser" in shown.out
        view = project.json("status").data
        jsonschema.Draft202012Validator(SCHEMA).validate(view)
        agent_status = view["phases"][0]["told"]
        assert (agent_status["task"], agent_status["role"], agent_status["state"], agent_status["at"]) == (
            "T1-01",
            "builder",
            "waiting",
            second["at"],
        )
        (home / "two").touch()
        assert run.end() == 0
    assert [e["payload"]["state"] for e in project.events("--kind", TOLD)] == ["working", "waiting"]
    assert "said" not in project.quick("status").out
    assert project.json("status").data["phases"][0]["told"] is None
    assert project.quick("doctor").code == 0


def test_progress_shows_a_line_for_it(project: Project, home: Path) -> None:
    """R-ADAPT-2."""
    script = """
say(state="blocked", message="no \\x1b[2Jnetwork")
wait_for("told")
work()
"""
    built_by(project, home, script)
    with project.started("execute-phase", "1", "--approve", project.approval()) as process:
        assert process.stderr is not None
        lines = iter(process.stderr)
        line = next(line for line in lines if "says" in line)
        (home / "told").touch()
        rest = "".join(lines)
        assert process.wait(60) == 0
    assert line == "    the builder says blocked: no \\x1b[2Jnetwork\n"
    assert "completed" in rest


def test_an_agent_that_reports_waiting_is_not_called_stalled(project: Project, home: Path) -> None:
    """R-ADAPT-2, R-RUN-8: silent for longer than `idle_timeout`, and done in the end."""
    script = """
say(state="waiting", message="for an approval")
time.sleep(5)
work()
"""
    built_by(project, home, script, settings="run: {idle_timeout: 3s}\n")
    assert project.execute().code == 0


def test_a_killed_run_continues_after_status_reports(project: Project, home: Path) -> None:
    """R-RUN-6, R-ADAPT-2: the last status is shown with its time, and not after the attempt."""
    script = """
say(state="working")
if os.environ["IDUMB_ATTEMPT"] == "1":
    wait_for("never")
work()
"""
    built_by(project, home, script)
    with project.running("execute-phase", "1", "--approve", project.approval()) as run:
        status_event = run.wait_for(TOLD)
        os.kill(run.pid, signal.SIGKILL)
        run.end()
    assert f"its builder reported working at {status_event['at']}" in project.quick("status").out
    assert project.resume().code == 0
    assert "said" not in project.quick("status").out


def test_a_reported_completion_is_never_trusted(project: Project, home: Path) -> None:
    """R-ADAPT-2, R-RUN-4, R-RUN-3."""
    built_by(project, home, 'say(state="done", message="all of it")\n', settings="run: {max_attempts: 1}\n")
    failed = project.execute()
    assert failed.code == 1
    assert "a.txt was declared (create) and did not change" in failed.data["tasks"][0]["reason"]


def test_the_schema_of_status_has_every_state() -> None:
    schema = SCHEMA["$defs"]["phase"]["properties"]["told"]
    assert set(schema["properties"]["state"]["enum"]) == set(STATES)
