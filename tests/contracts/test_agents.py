"""What every adapter that runs a program promises, by real processes (R-ADAPT-2, R-RUN-8).

The command-line agents are stand-ins that report as the real ones were recorded.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from types import FrameType
from typing import Protocol

import pytest
from msgspec.structs import replace

from idumb.agents import registry
from idumb.app.ports import Agent
from idumb.domain import agent, outcome
from idumb.domain.agent import BUILDER, AgentRequest, AgentResult
from idumb.domain.plans import plan
from idumb.domain.settings import Binding, Settings
from idumb.system import process_tree, signals
from tests.support import preset_stand_in
from tests.support.cases import every
from tests.support.equipment import equipped
from tests.support.patience import patient

ALLOWED = ("PATH", "HOME", "LANG")
SECRET = "sk-very-secret"


class Setting(Protocol):
    """How the suite makes each adapter run one shell script as its work; `adds` are variables that it sets itself."""

    adds: frozenset[str]

    def agent(self, script: str, root: Path) -> Agent: ...

    def request(self, script: str, root: Path) -> AgentRequest: ...


def a_request(root: Path, *, steps: tuple[plan.Step, ...] = ()) -> AgentRequest:
    task = plan.Task("T1-01", "Work", steps=steps)
    return AgentRequest(
        BUILDER, task, "the prompt", str(root), ("a.txt",), attempt=2, feedback="do better", run_id="run-7"
    )


def redact(text: str) -> str:
    return text.replace(SECRET, "[secret]")


def adapters(settings: Settings, root: Path) -> registry.AgentRegistry:
    allowed = replace(settings, environment=ALLOWED)
    return registry.build(equipped(root, settings=allowed, redact=redact))


class Steps:
    adds = frozenset[str]()

    def agent(self, script: str, root: Path) -> Agent:
        return adapters(Settings(), root).get("steps")

    def request(self, script: str, root: Path) -> AgentRequest:
        return a_request(root, steps=(plan.Step(0, "run", "work", {"command": script}),))


class Command:
    adds = frozenset({"IDUMB_STATE_FILE", "IDUMB_FEEDBACK_FILE"})

    def agent(self, script: str, root: Path) -> Agent:
        binding = Binding("shell", "command", ("sh", "-c", script))
        return adapters(Settings(bindings={"shell": binding}), root).get("shell")

    def request(self, script: str, root: Path) -> AgentRequest:
        return a_request(root)


OWN_HOME = frozenset({f"XDG_{kind}_HOME" for kind in ("CONFIG", "CACHE", "DATA", "STATE")} | {"TMPDIR"})
QUIET = {
    "claude": {"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "CLAUDE_CODE_MAX_RETRIES", "DISABLE_AUTOUPDATER"},
    "codex": {"CODEX_HOME"},
}


class Preset:
    """A command-line agent by its stand-in, in a home of its own."""

    def __init__(self, name: str) -> None:
        self._name = name
        self.adds = Command.adds | OWN_HOME | QUIET.get(name, set())

    def agent(self, script: str, root: Path) -> Agent:
        program = preset_stand_in.write_program(root.with_name(f"{root.name}-programs"), self._name, script)
        binding = Binding("it", self._name, (str(program),))
        return adapters(Settings(bindings={"it": binding}), root).get("it")

    def request(self, script: str, root: Path) -> AgentRequest:
        return a_request(root)


EXCEPT = {
    ("steps", "prompt"): "its work stands in the plan, and standard input is empty",
}
"""Promises that an adapter cannot keep, with the reason; each is shown not to hold."""

SETTINGS: dict[str, Setting] = {
    "steps": Steps(),
    "command": Command(),
    **{name: Preset(name) for name in registry.PRESETS},
}


@pytest.fixture(params=list(SETTINGS))
def setting(request: pytest.FixtureRequest) -> Setting:
    return SETTINGS[request.param]


def holds(setting: Setting, promise: str) -> bool:
    name = next(name for name, binding in SETTINGS.items() if binding is setting)
    return (name, promise) not in EXCEPT


def run(
    setting: Setting, script: str, root: Path, *, deadline: float | None = None, idle: float | None = None
) -> AgentResult:
    request = replace(setting.request(script, root), deadline=deadline, idle_timeout=idle)
    return setting.agent(script, root).run(request)


def printed(result: AgentResult) -> str:
    """Return the output of the work; `steps` keeps it in the step's record, and agents report after it."""
    return result.steps[0].response if result.steps else preset_stand_in.work(result.output)


def test_successful_work_is_a_claim_of_completion(setting: Setting, tmp_path: Path) -> None:
    """The workspace is its working folder."""
    result = run(setting, "pwd -P; echo text > a.txt", tmp_path)
    assert result.outcome == outcome.COMPLETED
    assert printed(result).strip() == os.path.realpath(tmp_path)
    assert (tmp_path / "a.txt").read_text(encoding="utf-8") == "text\n"


@every("script", ["exit 1", "exit 255", "kill -9 $$", "no-such-program-here; exit 3"])
def test_failed_work_is_a_value_and_never_an_exception(setting: Setting, tmp_path: Path, script: str) -> None:
    result = run(setting, script, tmp_path)
    assert (result.outcome, result.failure) in {(outcome.FAILED, None), (outcome.ERRORED, agent.MISSING)}
    assert result.message


def test_the_deadline_applies_to_the_whole_process_tree(setting: Setting, tmp_path: Path) -> None:
    """R-ADAPT-3."""
    script, noted = "setsid sh -c 'echo $$ > pid; exec sleep 1000' & sleep 1000", tmp_path / "pid"
    result = patient(
        lambda seconds: run(setting, script, tmp_path, deadline=seconds),
        lambda _: noted.exists() and bool(noted.read_text(encoding="ascii")),
        1.0,
    )
    assert result.outcome == outcome.TIMED_OUT
    if sys.platform == "linux":
        assert not process_tree.is_alive(int((tmp_path / "pid").read_text(encoding="ascii")))


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux lets a process adopt orphans")
def test_no_daemon_outlives_the_work(setting: Setting, tmp_path: Path) -> None:
    script = "(env -i setsid sh -c 'echo $$ > pid; exec sleep 1000' &); while [ ! -s pid ]; do :; done"
    assert run(setting, script, tmp_path).outcome == outcome.COMPLETED
    assert not process_tree.is_alive(int((tmp_path / "pid").read_text(encoding="ascii")))


def test_the_amount_of_kept_output_is_bounded(setting: Setting, tmp_path: Path) -> None:
    result = run(setting, "head -c 2000000 /dev/zero | tr '\\0' x; echo; echo end", tmp_path)
    assert result.outcome == outcome.COMPLETED
    assert len(printed(result)) < 100_000
    assert printed(result).endswith("end\n")
    assert "bytes left out" in printed(result)


def test_the_environment_has_the_allow_list_and_the_ids_of_the_work(
    setting: Setting, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """S5: nothing else of the executor's environment reaches the work."""
    for name in ("GIT_DIR", "LD_PRELOAD_X", "SSH_AUTH_SOCK", "BASH_ENV", "API_KEY"):
        monkeypatch.setenv(name, "leaked")
    monkeypatch.setenv("LANG", "C.UTF-8")
    program = "import json, os; print(json.dumps(dict(os.environ)))"
    seen = json.loads(printed(run(setting, f"exec {sys.executable} -I -c '{program}'", tmp_path)))
    ours = {name: seen[name] for name in seen if name.startswith("IDUMB_")}
    common = {*ALLOWED, *ours} - Command.adds
    assert set(seen) - {"PWD", "OLDPWD", "SHLVL", "_"} == common | setting.adds
    assert "leaked" not in seen.values()
    assert ours["IDUMB_RUN"] == "run-7"
    named = {"IDUMB_TASK": "T1-01", "IDUMB_ATTEMPT": "2", "IDUMB_ROLE": BUILDER}
    assert named.items() <= ours.items()


def test_the_prompt_arrives_on_standard_input(setting: Setting, tmp_path: Path) -> None:
    assert (printed(run(setting, "cat", tmp_path)) == "the prompt") == holds(setting, "prompt")


def test_silent_work_is_stopped(setting: Setting, tmp_path: Path) -> None:
    assert run(setting, "exec sleep 1000", tmp_path, idle=0.3).outcome == outcome.TIMED_OUT


def test_known_secrets_are_redacted_in_everything_that_is_passed_on(setting: Setting, tmp_path: Path) -> None:
    result = run(setting, f"echo 'the key is {SECRET}'; exit 3", tmp_path)
    assert SECRET not in repr(result)
    assert printed(result).strip() == "the key is [secret]"


class Cancelled(Exception):
    """Raised in the middle of the work, as Ctrl-C is."""


@pytest.fixture
def cancelling() -> Iterator[str]:
    """A command that cancels the work out of itself."""

    def cancel(number: int, frame: FrameType | None) -> None:
        signals.raise_or_defer(Cancelled())

    before = signal.signal(signal.SIGUSR1, cancel)
    yield f"kill -USR1 {os.getpid()}"
    signal.signal(signal.SIGUSR1, before)


def test_cancelled_work_leaves_nothing_running(setting: Setting, tmp_path: Path, cancelling: str) -> None:
    script = (
        f"(setsid sh -c 'echo $$ > pid; exec sleep 1000' &); while [ ! -s pid ]; do :; done; {cancelling}; sleep 1000"
    )
    with pytest.raises(Cancelled):
        run(setting, script, tmp_path)
    if sys.platform == "linux":
        assert not process_tree.is_alive(int((tmp_path / "pid").read_text(encoding="ascii")))
