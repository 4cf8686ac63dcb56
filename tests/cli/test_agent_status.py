"""Status that a working agent reports: shown at once, bounded, and never trusted."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path
from typing import TYPE_CHECKING

from idumb.domain.runs.event import Event
from idumb.views.terminal.plain_progress import PlainProgress
from tests.support.project import Project, task
from tests.support.schemas import validator

if TYPE_CHECKING:
    import pytest

AGENT = """\
say() { printf '%s' "$1" > $IDUMB_STATE_FILE.new; mv $IDUMB_STATE_FILE.new $IDUMB_STATE_FILE; }
wait_for() { read line < $HOME/$1; }
"""
TOLD = "attempt.told"
SCHEMA = validator("status")


def built_by(project: Project, home: Path, script: str) -> str:
    """A project with one task, whose agent follows a script and waits at the pipes `one` and `two`; its approval."""
    for name in ("one", "two"):
        os.mkfifo(home / name)
    (home / "agent.sh").write_text(AGENT + script, encoding="utf-8")
    argv = json.dumps(["sh", str(home / "agent.sh")])
    project.configure(
        f"builder: coder\nbindings:\n  coder: {{adapter: command, argv: {argv}}}\nrun: {{max_attempts: 1}}\n"
    )
    project.plan([task("T1-01", files="create `a.txt`", check="grep -q done a.txt")])
    return project.approval()


def test_a_working_agent_s_status_is_reported_at_once_and_shown_by_other_commands(project: Project, home: Path) -> None:
    """R-ADAPT-2, R-RUN-6: in the events and by `status` in another terminal, until the attempt ends, by a kill too."""
    script = r"""
if [ $IDUMB_ATTEMPT = 1 ]; then
    say '{"state": "working", "message": "reads the code"}'; wait_for one
    say '{"state": "waiting", "message": "log in at\n the \u001b[31mbrowser"}'; wait_for two
fi
echo done > a.txt
"""
    approval = built_by(project, home, script)
    with project.running("execute-phase", "1", "--approve", approval) as run:
        first = run.wait_for(TOLD, "T1-01")
        assert first["payload"] == {"role": "builder", "state": "working", "message": "reads the code", "number": 1}
        (home / "one").write_text("go on\n", encoding="utf-8")
        second = run.wait_for(TOLD, "T1-01")
        assert (second["payload"]["state"], second["payload"]["number"]) == ("waiting", 2)
        view = project.quick("status", "--json").data
        SCHEMA.validate(view)
        told = view["phases"][0]["told"]
        fields = (told["task"], told["role"], told["state"], told["at"])
        assert fields == ("T1-01", "builder", "waiting", second["at"])
        os.kill(run.pid, signal.SIGKILL)
        run.end()
    shown = project.quick("status").out
    assert f"T1-01: its builder reported waiting at {second['at']}: log in at the \\x1b[31mbrowser" in shown
    assert project.quick("resume", "1", "--no-verify", "--json").code == 0
    assert [e["payload"]["state"] for e in project.events("--kind", TOLD)] == ["working", "waiting"]
    assert "reported" not in project.quick("status").out
    assert project.quick("status", "--json").data["phases"][0]["told"] is None


def test_progress_shows_a_line_for_it_and_a_reported_completion_is_never_trusted(
    project: Project, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """R-ADAPT-2, R-RUN-4, R-RUN-3."""
    approval = built_by(project, home, r"""say '{"state": "done", "message": "all \u001b[2mof it"}'; wait_for one""")
    show = PlainProgress.event

    def show_and_let_go(progress: PlainProgress, event: Event) -> None:
        show(progress, event)
        if event.kind == TOLD:
            (home / "one").write_text("go on\n", encoding="utf-8")

    monkeypatch.setattr(PlainProgress, "event", show_and_let_go)
    ended = project.quick("execute-phase", "1", "--approve", approval)
    assert ended.code == 1
    assert "    the builder says done: all \\x1b[2mof it\n" in ended.err
    assert "a.txt was declared (create) and did not change" in ended.out
