"""A retried builder continues its own conversation or starts a new one, as its binding says (R-ADAPT-2)."""

from __future__ import annotations

import json
import stat
from pathlib import Path
from typing import Any

from tests.support.plans import run
from tests.support.project import Project, task

# Speaks as Claude Code does, and keeps its conversations in its home.
AGENT = """\
#!/usr/bin/env python3
import json, os, pathlib, signal, sys
told, given, place = sys.stdin.read(), sys.argv[1:], pathlib.Path(__file__).parent
session = given[given.index("--resume") + 1] if "--resume" in given else None
calls = [json.loads(line) for line in (place / "calls").read_text().splitlines()]
sessions = pathlib.Path(os.environ["HOME"], "sessions")
with (place / "calls").open("a") as file:
    file.write(json.dumps({"session": session, "told": told, "home": os.environ["HOME"]}) + "\\n")
if session is not None and not (sessions / session).exists():
    words = f"No conversation found with session ID: {session}"
    print(json.dumps({"type": "result", "subtype": "error_during_execution", "is_error": True, "errors": [words],
                      "session_id": "of-no-use"}))
    sys.exit(1)
steps = json.loads((place / "script").read_text())
step = steps.pop(0)
(place / "script").write_text(json.dumps(steps))
session = session or step.get("session") or f"s-{len(calls) + 1}"
sessions.mkdir(exist_ok=True)
(sessions / session.replace("/", "_")).write_text(told)
print(json.dumps({"type": "system", "subtype": "init", "session_id": session}), flush=True)
if "write" in step:
    with open(os.environ["IDUMB_TASK"].lower() + ".txt", "a") as file:
        file.write(step["write"])
if "forget" in step:
    (sessions / session).unlink()
if "die" in step:
    os.kill(os.getpid(), signal.SIGKILL)
words = step.get("error", "done")
print(json.dumps({"type": "result", "subtype": "success", "is_error": "error" in step, "result": words,
                  "session_id": session, "usage": {"input_tokens": 1, "output_tokens": 1}}))
"""
ON = "{resume: true}"


class Scene:
    """Tasks built by an agent that follows a script, call by call."""

    def __init__(
        self, project: Project, home: Path, *script: dict[str, Any], options: str = ON, tasks: int = 1
    ) -> None:
        self.project, self.home = project, home
        program = home / "claude"
        program.write_text(AGENT, encoding="utf-8")
        program.chmod(0o755)
        (home / "calls").touch()
        (home / "script").write_text(json.dumps(script), encoding="utf-8")
        binding = f"{{adapter: claude, argv: [{json.dumps(str(program))}], options: {options}}}"
        project.configure(f"builder: coder\nbindings:\n  coder: {binding}\nretry: {{calls: 1}}\n")
        names = [f"T1-0{number}" for number in range(1, tasks + 1)]
        project.plan([self.task(name) for name in names])

    @staticmethod
    def task(name: str) -> str:
        path = f"{name.lower()}.txt"
        return task(name, files=f"create `{path}`", check=f"grep -q done {path}")

    @property
    def calls(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in (self.home / "calls").read_text(encoding="utf-8").splitlines()]

    @property
    def sessions(self) -> list[str | None]:
        """Return the conversation that each call should continue."""
        return [call["session"] for call in self.calls]

    def payloads(self, kind: str) -> list[dict[str, Any]]:
        return [event["payload"] for event in self.project.events("--kind", kind)]


def test_after_a_failed_check_the_agent_gets_all_findings_in_its_conversation(project: Project, home: Path) -> None:
    scene = Scene(project, home, {"write": "half "}, {"write": "done"}, {"write": "done"}, tasks=2)
    assert run(project, "--no-verify").code == 0
    assert scene.sessions == [None, "s-1", None]
    again = scene.calls[1]["told"]
    assert "grep -q done t1-01.txt" in again
    assert "AC-1 failed" in again
    assert "The files are again as they were" not in again
    assert project.read("t1-01.txt") == "half done"
    begun, ended = scene.payloads("attempt.started"), scene.payloads("attempt.finished")
    assert [p.get("resumes") for p in begun] == [None, {"session": "s-1", "attempt": 1}, None]
    assert [(p["builder"]["session"], p.get("resumed")) for p in ended] == [("s-1", None), ("s-1", True), ("s-3", None)]
    differ = project.quick("envelope", "diff", "T1-01", "--attempt", "1", "--with", "2", "--json").data
    assert [row["name"] for row in differ["differences"]] == ["conversation"]
    shown = project.quick("envelope", "show", "T1-01", "--json").data["parts"]
    assert json.loads(next(row["source"] for row in shown if row["name"] == "conversation")) == begun[1]["resumes"]


def test_a_conversation_is_new_unless_the_binding_says_otherwise(project: Project, home: Path) -> None:
    scene = Scene(project, home, {"write": "half "}, {"write": "done"}, options="{}")
    assert run(project, "--no-verify").code == 0
    assert scene.sessions == [None, None]
    assert scene.payloads("attempt.finished")[0]["builder"]["session"] == "s-1"


def test_a_killed_or_cut_off_agent_continues_its_conversation_from_the_task_base(project: Project, home: Path) -> None:
    """After a kill in the same run, after a failure of its provider in the next command; it is told of the files."""
    cut_off = {"write": "half ", "error": "fetch failed"}
    scene = Scene(project, home, {"write": "half ", "die": True}, cut_off, {"write": "done"})
    assert run(project).code == 1
    assert project.quick("resume", "1", "--no-verify", "--json").code == 0
    assert scene.sessions == [None, "s-1", "s-1"]
    assert "The files are again as they were before the first attempt" in scene.calls[2]["told"]
    assert project.read("t1-01.txt") == "done"


def test_a_conversation_that_is_unknown_or_has_no_plain_word_as_its_id_is_replaced(
    project: Project, home: Path
) -> None:
    """The agent chooses the id and could smuggle options in. An unknown one is restarted in the same attempt."""
    hostile = {"write": "half ", "session": "--dangerously-skip-permissions"}
    scene = Scene(project, home, hostile, {"write": "half ", "forget": True}, {"write": "done"})
    answer = run(project, "--no-verify")
    assert answer.code == 0
    assert "coder did not resume its conversation about T1-01" in answer.out + answer.err
    assert scene.sessions == [None, None, "s-2", None]
    assert scene.calls[2]["told"] == scene.calls[3]["told"]
    ended = scene.payloads("attempt.finished")
    assert [p["builder"]["session"] for p in ended] == [None, "s-2", "s-4"]
    assert ended[-1]["resumed"] is False


def test_conversations_are_private_and_kept_only_until_the_run_ends(project: Project, home: Path) -> None:
    scene = Scene(project, home, {"write": "half "}, {"write": "done"})
    assert run(project, "--max-attempts", "1").code == 1
    kept = Path(scene.calls[0]["home"])
    assert {stat.S_IMODE(place.stat().st_mode) for place in (kept, kept.parent)} == {0o700}
    assert project.quick("resume", "1", "--retry-failed", "--no-verify", "--json").code == 0
    assert scene.sessions == [None, "s-1"]
    assert not kept.parent.exists()
