"""A retried builder continues its own conversation or starts a new one, as its binding says (R-ADAPT-2)."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Any

import pytest

from tests.support.plans import run
from tests.support.project import Project, task

# Speaks as Claude Code does, and keeps its conversations in its home. `session` is the one to continue, or "".
AGENT = """\
#!/bin/sh
place=$(dirname "$0"); n=1; while [ -e $place/told-$n ]; do n=$((n + 1)); done
session=; while [ $# != 0 ]; do if [ "$1" = --resume ]; then session=$2; fi; shift; done
cat > $place/told-$n; printf %s "$session" > $place/session-$n; printf %s "$HOME" > $place/home-$n
end() { echo "{\\"type\\": \\"result\\", \\"session_id\\": \\"$session\\", $1}"; }
if [ "$session" ] && [ ! -e "$HOME/sessions/$session" ]; then
    words="No conversation found with session ID: $session"; session=of-no-use
    end "\\"subtype\\": \\"error_during_execution\\", \\"is_error\\": true, \\"errors\\": [\\"$words\\"]"; exit 1
fi
next=$(ls $place/step-* | head -n 1); . $next; rm $next
session=${session:-${own:-s-$n}}; mkdir -p $HOME/sessions; touch -- "$HOME/sessions/$session"
echo "{\\"type\\": \\"system\\", \\"subtype\\": \\"init\\", \\"session_id\\": \\"$session\\"}"
printf %s "$write" >> $(echo $IDUMB_TASK | tr T t).txt
[ ! "$forget" ] || rm "$HOME/sessions/$session"
[ ! "$die" ] || kill -9 $$
usage='"usage": {"input_tokens": 1, "output_tokens": 1}'
end "\\"subtype\\": \\"success\\", \\"is_error\\": ${failed:-false}, \\"result\\": \\"${error:-done}\\", $usage"
"""


class Scene:
    """Tasks built by an agent that follows a script, call by call."""

    def __init__(self, project: Project, home: Path, *script: dict[str, str], tasks: int = 1) -> None:
        self.project, self.home = project, home
        program = home / "claude"
        program.write_text(AGENT, encoding="utf-8")
        program.chmod(0o755)
        for number, step in enumerate(script, 1):
            lines = [f"{name}={shlex.quote(value)}" for name, value in step.items()]
            (home / f"step-{number}").write_text("\n".join(lines), encoding="utf-8")
        binding = f"{{adapter: claude, argv: [{json.dumps(str(program))}], options: {{resume: true}}}}"
        project.configure(f"builder: coder\nbindings:\n  coder: {binding}\nretry: {{calls: 1}}\n")
        names = [f"T1-0{number}" for number in range(1, tasks + 1)]
        project.plan([self.task(name) for name in names])

    @staticmethod
    def task(name: str) -> str:
        path = f"{name.lower()}.txt"
        return task(name, files=f"create `{path}`", check=f"grep -q done {path}")

    def _of_calls(self, name: str) -> list[str]:
        files = sorted(self.home.glob(f"{name}-*"), key=lambda path: int(path.name.rpartition("-")[2]))
        return [path.read_text(encoding="utf-8") for path in files]

    @property
    def told(self) -> list[str]:
        return self._of_calls("told")

    @property
    def homes(self) -> list[str]:
        return self._of_calls("home")

    @property
    def sessions(self) -> list[str | None]:
        """Return the conversation that each call should continue."""
        return [name or None for name in self._of_calls("session")]

    def payloads(self, kind: str) -> list[dict[str, Any]]:
        return [event["payload"] for event in self.project.events("--kind", kind)]


def test_after_a_failed_check_the_agent_gets_all_findings_in_its_conversation(project: Project, home: Path) -> None:
    scene = Scene(project, home, {"write": "half "}, {"write": "done"}, {"write": "done"}, tasks=2)
    assert run(project, "--no-verify").code == 0
    assert scene.sessions == [None, "s-1", None]
    again = scene.told[1]
    assert "grep -q done t1-01.txt" in again
    assert "AC-1 failed" in again
    assert "The files are again as they were" not in again
    assert project.read("t1-01.txt") == "half done"
    begun, ended = scene.payloads("attempt.started"), scene.payloads("attempt.finished")
    assert [p.get("resumes") for p in begun] == [None, {"session": "s-1", "attempt": 1}, None]
    assert [(p["builder"]["session"], p.get("resumed")) for p in ended] == [("s-1", None), ("s-1", True), ("s-3", None)]
    differ = project.quick("show", "T1-01", "--debug", "--facts-only", "--json").data["task"]["envelope"]
    assert differ[0]["parts"] == ["conversation"]
    shown = project.quick("show", "T1-01", "--envelope", "--json").data["parts"]
    assert json.loads(next(row["source"] for row in shown if row["name"] == "conversation")) == begun[1]["resumes"]


def test_a_killed_or_cut_off_agent_continues_its_conversation_from_the_task_base(project: Project, home: Path) -> None:
    """After a kill in the same run, after a failure of its provider in the next command; it is told of the files."""
    cut_off = {"write": "half ", "failed": "true", "error": "fetch failed"}
    scene = Scene(project, home, {"write": "half ", "die": "yes"}, cut_off, {"write": "done"})
    assert run(project).code == 1
    assert project.quick("resume", "1", "--no-verify", "--json").code == 0
    assert scene.sessions == [None, "s-1", "s-1"]
    assert "The files are again as they were before the first attempt" in scene.told[2]
    assert project.read("t1-01.txt") == "done"


@pytest.mark.nightly
def test_a_conversation_that_is_unknown_or_has_no_plain_word_as_its_id_is_replaced(
    project: Project, home: Path
) -> None:
    """The agent chooses the id and could smuggle options in. An unknown one is restarted in the same attempt."""
    hostile = {"write": "half ", "own": "--dangerously-skip-permissions"}
    scene = Scene(project, home, hostile, {"write": "half ", "forget": "yes"}, {"write": "done"})
    answer = run(project, "--no-verify")
    assert answer.code == 0
    assert "coder did not resume its conversation about T1-01" in answer.out + answer.err
    assert scene.sessions == [None, None, "s-2", None]
    assert scene.told[2] == scene.told[3]
    ended = scene.payloads("attempt.finished")
    assert [p["builder"]["session"] for p in ended] == [None, "s-2", "s-4"]
    assert ended[-1]["resumed"] is False
