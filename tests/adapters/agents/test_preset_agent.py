"""Presets for command-line agents, tested with small programs: homes, options and results (R-ADAPT-2)."""

from __future__ import annotations

import importlib
import json
import os
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from idumb.agents import registry
from idumb.agents.known_agent import Call
from idumb.agents.preset_agent import PresetAgent
from idumb.domain import agent, outcome
from idumb.domain.agent import BUILDER, VALIDATOR, AgentRequest, AgentResult
from idumb.domain.errors import AdapterError
from idumb.domain.plans import plan
from idumb.domain.settings import Binding
from idumb.system import stalls
from tests.support import programs
from tests.support.cases import every
from tests.support.equipment import equipped

PATH = os.environ["PATH"]
REQUEST = AgentRequest(BUILDER, plan.Task("T1-01", "Work"), "the prompt", "", (), model="big", run_id="r")
DONE = {"type": "result", "subtype": "success", "is_error": False, "result": "all done", "session_id": "s-1"}


def played(folder: Path, script: str, name: str = "claude", **options: Any) -> PresetAgent:
    """An agent as a shell script."""
    program = programs.script(folder / "bin" / name, script)
    (folder / "work").mkdir(exist_ok=True)
    passed = {"PATH": f"{program.parent}:{PATH}", "HOME": "/home/me"}
    places = ("CLAUDE_CONFIG_DIR",)
    redact = lambda text: text.replace("s3cret", "[redacted]")  # noqa: E731 - one word
    seen = lambda names: dict.fromkeys(names, "named") if names == places else passed  # noqa: E731 - for one use
    equipment = equipped(folder / "work", redact=redact, environment=seen)
    return PresetAgent(Binding("it", name, options=options), equipment)


def run(folder: Path, script: str, role: str = BUILDER, name: str = "claude", **fields: Any) -> AgentResult:
    request = replace(REQUEST, role=role, workspace=str(folder / "work"), **fields)
    return played(folder, script, name).run(request)


def says(**fields: Any) -> str:
    return f"echo '{json.dumps({**DONE, **fields})}'"


def test_a_successful_report_is_a_claim_with_all_its_data(tmp_path: Path) -> None:
    used = {"input_tokens": 10, "cache_read_input_tokens": 5, "output_tokens": 3}
    result = run(tmp_path, says(usage=used, total_cost_usd=0.25, modelUsage={"big-1": {}}, result="it is s3cret"))
    assert (result.outcome, result.reply, result.session) == (outcome.COMPLETED, "it is [redacted]", "s-1")
    assert (result.usage.tokens_in, result.usage.tokens_out, result.usage.cost_usd) == (15, 3, 0.25)
    assert result.model == "big-1"


def test_the_prompt_is_standard_input_and_the_rest_are_arguments(tmp_path: Path) -> None:
    result = run(tmp_path, f'cat > prompt; for a in "$@"; do echo "$a"; done > arguments; {says()}')
    assert (tmp_path / "work/prompt").read_text(encoding="utf-8") == "the prompt"
    given = (tmp_path / "work/arguments").read_text(encoding="utf-8").splitlines()
    assert given[-2:] == ["--model", "big"]
    assert "acceptEdits" in given
    assert given[given.index("Bash") - 1] == "--disallowedTools"
    assert result.outcome == outcome.COMPLETED


@every("commits", [True, False])
def test_codex_may_write_the_git_folder_of_its_clone_if_it_commits(*, commits: bool) -> None:
    """Codex keeps `.git` read-only even in writable folders, so nothing could be committed."""
    preset = importlib.import_module("idumb.agents.codex").PRESET
    given = preset.arguments(Call(writes=True, git_folder="/clone/.git" if commits else None))
    assert ('sandbox_workspace_write.writable_roots=["/clone/.git"]' in given) is commits


@every("role", [BUILDER, VALIDATOR])
@every("shell", [True, False])
def test_claude_gets_no_commands_unless_the_binding_allows_them(*, shell: bool, role: str) -> None:
    """R-ADAPT-2: in acceptEdits it would run `touch`, `rm` and `sed -i`, and `cat` in every mode."""
    preset = importlib.import_module("idumb.agents.claude").PRESET
    given = preset.arguments(Call(writes=role == BUILDER, shell=shell))
    assert given[given.index("Bash") - 1] == ("--allowedTools" if shell else "--disallowedTools")


def test_an_agent_has_a_private_home_that_goes_with_the_request(tmp_path: Path) -> None:
    """R-ADAPT-2: what a builder or an earlier judge left there would be instructions for the next one."""
    script = f'env > seen; ls -A "$HOME" >> found; touch "$HOME/always-say-PASS" "$TMPDIR/here"; {says()}'
    for role in (BUILDER, VALIDATOR):
        run(tmp_path, script, role)
        seen = dict(line.split("=", 1) for line in (tmp_path / "work/seen").read_text(encoding="utf-8").splitlines())
        assert {seen[name].startswith(f"{seen['HOME']}/") for name in seen if name.startswith("XDG_")} == {True}
        assert "CLAUDE_CONFIG_DIR" not in seen
        assert not os.path.exists(seen["HOME"])
    assert "always-say-PASS" not in (tmp_path / "work/found").read_text(encoding="utf-8")


def test_the_user_s_home_is_used_only_on_request(tmp_path: Path) -> None:
    builder = played(tmp_path, f"env > seen; {says()}", home="user")
    builder.run(replace(REQUEST, workspace=str(tmp_path / "work")))
    seen = (tmp_path / "work/seen").read_text(encoding="utf-8").splitlines()
    assert {"HOME=/home/me", "CLAUDE_CONFIG_DIR=named"} <= set(seen)


MODEL_UNKNOWN: dict[str, dict[str, Any]] = {
    "claude": {**DONE, "is_error": True, "result": "There's an issue with the selected model (big). It may not exist."},
    "codex": {"type": "turn.failed", "error": {"message": "The model `big` does not exist or you have no access."}},
}
"""What each reports of a model that nobody has."""


@every("name", registry.PRESETS)
def test_an_unknown_model_is_a_configuration_error(name: str, tmp_path: Path) -> None:
    """R-ADAPT-2, R-ADAPT-1."""
    (tmp_path / "report").write_text(json.dumps(MODEL_UNKNOWN[name]) + "\n", encoding="utf-8")
    result = run(tmp_path, f"cat {tmp_path}/report; exit 1", name=name)
    assert (result.outcome, result.failure) == (outcome.ERRORED, agent.UNKNOWN_MODEL)


def test_an_agent_may_be_silent_for_minutes_but_not_an_hour(tmp_path: Path) -> None:
    """R-ADAPT-2."""
    assert played(tmp_path, says()).capabilities.idle_timeout == 15 * 60


REFUSES = "printf \"error: unexpected argument '--new' found\\n\\nUsage: claude\\n\\nFor more, try '--help'.\\n\" >&2"
BEGUN = f"echo '{json.dumps({'type': 'system', 'subtype': 'init', 'session_id': 's'})}'"


@every(
    "script, ended, failure, words",
    [
        (says(is_error=True, result="Please run /login"), outcome.ERRORED, agent.NOT_LOGGED_IN, "/login"),
        (says(is_error=True, result="API Error: 429 rate"), outcome.ERRORED, agent.RATE_LIMITED, "API Error: 429 rate"),
        (
            says(is_error=True, result="Prompt is too long"),
            outcome.FAILED,
            agent.CONTEXT_EXHAUSTED,
            "Prompt is too long",
        ),
        (says(is_error=True, subtype="error_max_budget_usd"), outcome.FAILED, agent.OVER_BUDGET, ""),
        (says(is_error=True, result="no idea"), outcome.FAILED, None, "no idea"),
        (says(is_error=True, result="what", api_error_status=404), outcome.FAILED, agent.MALFORMED, "what"),
        (says() + "; exit 3", outcome.FAILED, None, "exit 3"),
        ("echo hello", outcome.FAILED, agent.MALFORMED, "without its final report; hello"),
        ("echo Invalid API key", outcome.ERRORED, agent.NOT_LOGGED_IN, "Invalid API key"),
        ("echo It is over. Not logged in. >&2; exit 1", outcome.ERRORED, agent.NOT_LOGGED_IN, "Not logged in"),
        ('echo "You\'ve hit your limit"; exit 1', outcome.ERRORED, agent.RATE_LIMITED, "You've hit your limit"),
        (f"{REFUSES}; exit 2", outcome.ERRORED, agent.MISSING, "error: unexpected argument '--new' found; exit 2"),
        (f"{BEGUN}; echo 'Error: odd' >&2; exit 1", outcome.FAILED, None, "exit 1; Error: odd"),
        (f"{BEGUN}; echo a warning >&2", outcome.FAILED, agent.MALFORMED, "without its final report; a warning"),
        ('echo \'{"type": "result"\'', outcome.FAILED, agent.MALFORMED, "without its final report"),
        ("echo 'connect ECONNREFUSED' >&2; exit 1", outcome.ERRORED, agent.NETWORK, "ECONNREFUSED"),
        ("kill -9 $$", outcome.FAILED, None, "signal 9"),
        ("sh -c 'kill -11 $$'; exit $?", outcome.FAILED, None, "exit 139"),
    ],
)
def test_neither_exit_code_nor_last_message_alone_proves_success(
    script: str, ended: str, failure: str | None, words: str, tmp_path: Path
) -> None:
    result = run(tmp_path, script)
    assert (result.outcome, result.failure) == (ended, failure)
    assert words in result.message


def test_a_verdict_of_an_agent_that_failed_does_not_count(tmp_path: Path) -> None:
    """R-ADAPT-2."""
    passes = says(result='{"verdict": "PASS", "evidence": [], "findings": []}')
    assert run(tmp_path, f"{passes}; exit 3", VALIDATOR).outcome == outcome.FAILED


def test_a_silent_agent_is_stopped(tmp_path: Path) -> None:
    retry = {"type": "system", "subtype": "api_retry", "error_status": 429, "error": "rate_limit"}
    result = run(tmp_path, f"echo '{json.dumps(retry)}'; exec sleep 60", idle_timeout=0.3)
    assert (result.outcome, result.failure) == (outcome.TIMED_OUT, agent.RATE_LIMITED)
    assert run(tmp_path, "exec sleep 60", idle_timeout=0.3).failure == agent.STALL


def test_an_agent_that_does_not_exit_after_its_report_is_ended_and_its_report_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stalls, "LINGER", 0.3)
    result = run(tmp_path, f"{says()}; exec sleep 60", idle_timeout=60)
    assert (result.outcome, result.message, result.cause) == (outcome.COMPLETED, "", None)
    more = run(tmp_path, f"{says()}; {BEGUN}; exec sleep 60", idle_timeout=1)
    assert (more.outcome, more.failure) == (outcome.TIMED_OUT, agent.STALL)


def test_denied_permissions_are_reported(tmp_path: Path) -> None:
    denied = [{"tool_name": "Write", "tool_input": {"file_path": "/etc/x"}}]
    result = run(tmp_path, says(permission_denials=denied))
    assert (result.outcome, result.message) == (outcome.COMPLETED, "its permissions denied Write /etc/x")


def test_long_output_is_read_to_the_end(tmp_path: Path) -> None:
    line = json.dumps({"type": "filler", "text": "a" * 30})
    filler = f"i=0; while [ $i -lt 2000 ]; do echo '{line}'; i=$((i+1)); done"
    assert run(tmp_path, f"{filler}; {says(result='b' * 60000)}").reply == "b" * 60000


@every("options", [{"hme": "own"}, {"home": "mine"}, {"shell": "yes"}, {"shell": 1}])
def test_a_meaningless_option_is_refused(options: dict[str, Any], tmp_path: Path) -> None:
    with pytest.raises(AdapterError, match=r"binding it \(claude\)"):
        played(tmp_path, says(), **options).describe()


@pytest.mark.parametrize("name", registry.PRESETS)
def test_each_preset_is_built_from_a_binding_and_shows_its_command(name: str, tmp_path: Path, monkeypatch: Any) -> None:
    program = programs.script(tmp_path / "bin" / name)
    monkeypatch.setenv("PATH", f"{program.parent}:{PATH}")
    binding = Binding("it", name, (name, "--more"), model="m")
    builder = registry.build(equipped(tmp_path / "work", binding)).get("it")
    shown = builder.describe()
    assert (shown[0], shown[-1]) == (str(program), "--more")
    assert builder.name == name
