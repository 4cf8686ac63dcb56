"""What every agent adapter promises, run on `steps`, on `command` and on the fake (R-ADAPT-2, R-RUN-8)."""

from __future__ import annotations

import dataclasses
import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

import pytest

from idumb.agents import registry
from idumb.app import ports
from idumb.domain import outcome, plan
from idumb.domain.agent import BUILDER, VALIDATOR, AgentRequest, AgentResult
from idumb.domain.settings import Binding, Settings
from idumb.system import process_tree, processes
from tests.support.scripted_agent import ScriptedAgent

ALLOWED = ("PATH", "HOME", "LANG")


class Setting(Protocol):
    """How the suite makes each adapter run one shell script as its work."""

    def agent(self, script: str, root: Path) -> ports.Agent: ...

    def request(self, script: str, root: Path) -> AgentRequest: ...


def a_request(root: Path, *, steps: tuple[plan.Step, ...] = ()) -> AgentRequest:
    task = plan.Task("T1-01", "Work", steps=steps)
    return AgentRequest(
        BUILDER, task, "the prompt", str(root), ("a.txt",), attempt=2, feedback="do better", run_id="run-7"
    )


def no_patch(_: str, __: Callable[[str], str | None]) -> tuple[bool, str]:
    return False, "no patch expected"


def adapters(settings: Settings, root: Path) -> registry.AgentRegistry:
    return registry.build(dataclasses.replace(settings, environment=ALLOWED), str(root), no_patch, lambda text: text)


class Steps:
    def agent(self, script: str, root: Path) -> ports.Agent:
        return adapters(Settings(), root).get("steps")

    def request(self, script: str, root: Path) -> AgentRequest:
        return a_request(root, steps=(plan.Step(0, "run", "work", {"command": script}),))


class Command:
    def agent(self, script: str, root: Path) -> ports.Agent:
        binding = Binding("shell", "command", ("sh", "-c", script))
        return adapters(Settings(bindings={"shell": binding}), root).get("shell")

    def request(self, script: str, root: Path) -> AgentRequest:
        return a_request(root)


class Scripted:
    """The fake reaches the same promises through `system/processes`, so the engine's tests may rely on it."""

    def agent(self, script: str, root: Path) -> ports.Agent:
        def work(request: AgentRequest) -> AgentResult:
            finished = processes.run(
                ["/bin/sh", "-c", script],
                cwd=request.workspace,
                environment=processes.environment(ALLOWED, {"IDUMB_RUN": request.run_id}),
                stdin=request.prompt.encode(),
                timeout=request.deadline,
                grace=0.2,
            )
            ended = outcome.COMPLETED if finished.exit_code == 0 else outcome.FAILED
            return AgentResult(
                outcome.TIMED_OUT if finished.timed_out else ended,
                f"exit {finished.exit_code}",
                output=finished.output.text(),
            )

        return ScriptedAgent(work)

    def request(self, script: str, root: Path) -> AgentRequest:
        return a_request(root)


SETTINGS: dict[str, Setting] = {"steps": Steps(), "command": Command(), "scripted": Scripted()}


@pytest.fixture(params=list(SETTINGS))
def setting(request: pytest.FixtureRequest) -> Setting:
    return SETTINGS[request.param]


def run(setting: Setting, script: str, root: Path, *, deadline: float | None = None) -> AgentResult:
    request = dataclasses.replace(setting.request(script, root), deadline=deadline)
    return setting.agent(script, root).run(request)


def printed(result: AgentResult) -> str:
    """What the work printed; `steps` keeps it in the record of the step."""
    return result.steps[0].response if result.steps else result.output


def test_work_that_succeeds_is_a_claim_of_completion(setting: Setting, tmp_path: Path) -> None:
    result = run(setting, "echo text > a.txt", tmp_path)
    assert result.outcome == outcome.COMPLETED
    assert (tmp_path / "a.txt").read_text(encoding="utf-8") == "text\n"


@pytest.mark.parametrize("script", ["exit 1", "exit 255", "kill -9 $$", "no-such-program-here; exit 3"])
def test_work_that_fails_is_a_value_and_never_raised(setting: Setting, tmp_path: Path, script: str) -> None:
    result = run(setting, script, tmp_path)
    assert result.outcome == outcome.FAILED
    assert result.message


def test_the_workspace_is_the_working_folder(setting: Setting, tmp_path: Path) -> None:
    assert printed(run(setting, "pwd -P", tmp_path)).strip() == os.path.realpath(tmp_path)


def test_the_deadline_is_kept_by_the_whole_tree(setting: Setting, tmp_path: Path) -> None:
    result = run(setting, "setsid sh -c 'echo $$ > pid; exec sleep 1000' & sleep 1000", tmp_path, deadline=1.0)
    assert result.outcome == outcome.TIMED_OUT
    if sys.platform == "linux":
        assert not process_tree.is_alive(int((tmp_path / "pid").read_text(encoding="ascii")))


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux lets a process adopt orphans")
def test_no_daemon_outlives_the_work(setting: Setting, tmp_path: Path) -> None:
    script = "(env -i setsid sh -c 'echo $$ > pid; exec sleep 1000' &); while [ ! -s pid ]; do :; done"
    assert run(setting, script, tmp_path).outcome == outcome.COMPLETED
    assert not process_tree.is_alive(int((tmp_path / "pid").read_text(encoding="ascii")))


def test_output_is_bounded_whatever_is_printed(setting: Setting, tmp_path: Path) -> None:
    result = run(setting, "head -c 20000000 /dev/zero | tr '\\0' x; echo; echo end", tmp_path)
    assert len(printed(result)) < 100_000
    assert printed(result).endswith("end\n")
    assert "bytes left out" in printed(result)


def test_output_that_is_no_text_is_shown_as_escapes(setting: Setting, tmp_path: Path) -> None:
    assert printed(run(setting, r"printf 'a\000\377b'", tmp_path)) == "a\\x00\\xffb"


def test_the_environment_is_the_allow_list_and_what_names_the_work(
    setting: Setting, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """S5: nothing else of our own environment reaches the work."""
    for name in ("GIT_DIR", "LD_PRELOAD_X", "SSH_AUTH_SOCK", "BASH_ENV", "API_KEY"):
        monkeypatch.setenv(name, "leaked")
    monkeypatch.setenv("LANG", "C.UTF-8")
    program = "import json, os; print(json.dumps(dict(os.environ)))"
    seen = json.loads(printed(run(setting, f"exec {sys.executable} -I -c '{program}'", tmp_path)))
    ours = {name: seen.pop(name) for name in list(seen) if name.startswith("IDUMB_")}
    assert set(seen) - {"PWD", "OLDPWD", "SHLVL", "_"} == set(ALLOWED)
    assert ours["IDUMB_RUN"] == "run-7"
    if setting is not SETTINGS["scripted"]:
        assert (ours["IDUMB_TASK"], ours["IDUMB_ATTEMPT"], ours["IDUMB_ROLE"]) == ("T1-01", "2", BUILDER)


@pytest.mark.parametrize("name", ["command", "scripted"])
def test_the_prompt_arrives_on_standard_input(name: str, tmp_path: Path) -> None:
    result = run(SETTINGS[name], "cat; exit 0", tmp_path)
    assert printed(result) == "the prompt"


def test_the_fake_remembers_what_it_was_asked(tmp_path: Path) -> None:
    agent = ScriptedAgent()
    request = a_request(tmp_path)
    assert agent.run(request).outcome == outcome.COMPLETED
    assert agent.requests == [request]
    assert agent.requests[0].allowed_paths == ("a.txt",)


def test_a_failing_fake_is_a_value_too(tmp_path: Path) -> None:
    def work(request: AgentRequest) -> None:
        (tmp_path / "absent").read_bytes()

    assert ScriptedAgent(work).run(a_request(tmp_path)).outcome == outcome.FAILED


def test_roles_are_told_apart(tmp_path: Path) -> None:
    agent = Command().agent("echo $IDUMB_ROLE", tmp_path)
    request = dataclasses.replace(a_request(tmp_path), role=VALIDATOR)
    assert agent.run(request).output == "validator\n"
