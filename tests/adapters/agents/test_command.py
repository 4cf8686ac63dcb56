"""Any program as builder or validator, and how its file is found (R-ADAPT-2, R-RUN-4)."""

from __future__ import annotations

import os
import re
import stat
import sys
from pathlib import Path

import pytest
from msgspec.structs import replace

from idumb.agents import registry, transcript
from idumb.agents.command import CommandAgent
from idumb.agents.program import resolve
from idumb.domain import outcome
from idumb.domain.agent import BUILDER, VALIDATOR, AgentRequest, AgentResult
from idumb.domain.errors import AdapterError
from idumb.domain.plans import plan
from idumb.domain.settings import Binding
from idumb.system.redaction import Redactor
from tests.support import programs
from tests.support.cases import every
from tests.support.equipment import equipped
from tests.support.errors import refusing

PATH = os.environ["PATH"]
REQUEST = AgentRequest(BUILDER, plan.Task("T1-01", "Work"), "the prompt: é", "", ())


def agent(root: Path, *argv: str, prompt: str = "stdin", path: str = PATH) -> CommandAgent:
    binding = Binding("it", "command", argv, prompt)
    redact = lambda text: text.replace("s3cret", "[redacted]")  # noqa: E731 - one word
    return CommandAgent(binding, equipped(root, redact=redact, environment=lambda _: {"PATH": path}))


def run(root: Path, script: str, **fields: object) -> AgentResult:
    request = replace(REQUEST, workspace=str(root), **fields)
    return agent(root, "sh", "-c", script).run(request)


def test_the_prompt_can_be_a_file_that_only_this_user_can_read(tmp_path: Path) -> None:
    script = 'echo "$1"; ls -l "$1" | cut -c1-10; cat "$1"; cat'
    request = replace(REQUEST, workspace=str(tmp_path))
    result = agent(tmp_path, "sh", "-c", script, "name", "{prompt_file}", prompt="file").run(request)
    path, mode, text = result.output.split("\n", 2)
    assert mode == stat.filemode(0o100600)
    assert text == "the prompt: é"
    assert not path.startswith(str(tmp_path))
    assert not os.path.exists(os.path.dirname(path))


def test_inputs_are_in_their_folder_and_those_of_a_killed_executor_are_removed(tmp_path: Path) -> None:
    """S14: private files of idumb's own folder; a killed executor could not remove them."""
    papers = tmp_path / "state" / "papers"
    (papers / "idumb-left").mkdir(parents=True)
    binding = Binding("it", "command", ("cat", "{prompt_file}"), "file")
    builder = registry.build(equipped(tmp_path / "work", binding, inputs=str(papers)))
    assert not papers.exists()
    (tmp_path / "work").mkdir()
    request = replace(REQUEST, workspace=str(tmp_path / "work"))
    assert builder.get("it").run(request).output == "the prompt: é"
    assert os.listdir(papers) == []
    assert stat.S_IMODE(papers.stat().st_mode) == 0o700


def test_arguments_reach_the_program_unchanged(tmp_path: Path) -> None:
    """S3: no shell sees them."""
    odd = ["$(touch x)", "; rm -r .", "", "a b", "-n", "`id`", "{prompt}", "'\"\\"]
    request = replace(REQUEST, workspace=str(tmp_path))
    program = "import sys; print(sys.argv[1:])"
    result = agent(tmp_path, sys.executable, "-I", "-c", program, *odd).run(request)
    assert result.output.strip() == repr(odd)
    assert os.listdir(tmp_path) == []


def test_feedback_of_the_previous_attempt_is_a_file(tmp_path: Path) -> None:
    assert run(tmp_path, 'cat "$IDUMB_FEEDBACK_FILE"', feedback="too slow").output == "too slow"
    assert run(tmp_path, "echo ${IDUMB_FEEDBACK_FILE-none}").output == "none\n"


def test_long_output_is_kept_in_a_bounded_file_without_secrets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """R-RUN-2."""
    monkeypatch.setattr(transcript, "HALF", 100_000)
    redactor = Redactor({"KEY": "s3cret-key"})
    binding = Binding("it", "command", ("sh", "-c", "yes s3cret-key line | head -c 500000; printf '\\nlast \\377'"))
    kept_in = str(tmp_path / "kept/run-1")
    equipment = equipped(tmp_path, redact=redactor.redact, transcripts=kept_in, stream=redactor.stream)
    builder = CommandAgent(binding, equipment)
    request = replace(REQUEST, workspace=str(tmp_path), attempt=2)
    result = builder.run(request)
    assert result.truncated
    assert result.transcript == str(tmp_path / "kept/run-1/T1-01-2-builder.log")
    kept = Path(result.transcript).read_bytes()
    assert b"s3cret-key" not in kept
    assert kept.startswith(b"[redacted:")
    assert re.search(rb" in between were not kept\]\n\[redacted:", kept)
    assert kept.endswith(b"\nlast \377")
    assert transcript.HALF * 1.9 < len(kept) < transcript.HALF * 2.1
    assert stat.S_IMODE(os.stat(result.transcript).st_mode) == 0o600
    short = CommandAgent(Binding("it", "command", ("true",)), equipment)
    assert short.run(request).transcript is None


def test_the_output_of_a_builder_never_fails_it(tmp_path: Path) -> None:
    assert run(tmp_path, """echo '{"verdict": "FAIL"}'""").outcome == outcome.COMPLETED


def test_a_builder_that_fails_is_quoted_with_its_error(tmp_path: Path) -> None:
    failed = run(tmp_path, "echo so far; echo 'Error: no \033[31mkey'; echo; echo '  see the manual'; exit 3")
    assert (failed.outcome, failed.message) == (outcome.FAILED, "exit 3: Error: no key")
    assert run(tmp_path, "exit 3").message == "exit 3"


@every(
    "script, ended, message",
    [
        ("true", outcome.COMPLETED, ""),
        ("false", outcome.FAILED, "exit 1"),
        ("""echo '{"verdict": "PASS"}'""", outcome.COMPLETED, ""),
        ("""echo '{"verdict": "PASS", "findings": ["fine"]}'; echo; echo ' '""", outcome.COMPLETED, "fine"),
        ("""echo '{"verdict": "PASS"}'; exit 2""", outcome.FAILED, "exit 2, although its verdict was PASS"),
        ("""echo '{"verdict": "PARTIAL", "findings": ["a", "b"]}'""", outcome.FAILED, "PARTIAL: a; b"),
        (
            """echo '{"verdict": "FAIL", "findings": [{"file": "a.py", "line": 3, "message": "no"}]}'; exit 1""",
            outcome.FAILED,
            "FAIL: a.py:3: no",
        ),
        ("""echo '{"verdict": "FAIL"}'; echo more""", outcome.COMPLETED, ""),
        ("""echo '{"verdict": "MAYBE"}'""", outcome.COMPLETED, ""),
        ("echo '{'", outcome.COMPLETED, ""),
    ],
)
def test_the_worse_of_exit_code_and_last_line_decides_for_a_validator(
    tmp_path: Path, script: str, ended: str, message: str
) -> None:
    """F54: a failing exit is never a PASS."""
    result = run(tmp_path, script, role=VALIDATOR)
    assert (result.outcome, result.message) == (ended, message)


@every("last", [b'{"a":' * 50_000, b"\xff\xfe{", b""])
def test_a_deep_or_huge_last_line_is_not_a_verdict(tmp_path: Path, last: bytes) -> None:
    (tmp_path / "last").write_bytes(last)
    assert run(tmp_path, f"cat {tmp_path}/last", role=VALIDATOR).message == ""


def test_a_missing_program_is_an_error_with_the_next_step(tmp_path: Path) -> None:
    result = agent(tmp_path, "no-such-program-here").run(replace(REQUEST, workspace=str(tmp_path)))
    assert result.outcome == outcome.ERRORED
    assert "no-such-program-here not found" in result.message
    assert "put its folder on PATH" in result.message


def test_the_error_for_a_known_missing_program_has_the_install_command(tmp_path: Path) -> None:
    """R-ADAPT-3."""
    with pytest.raises(AdapterError) as caught:
        resolve("codex", f"{tmp_path}/bin", str(tmp_path / "repository"))
    assert "npm install -g @openai/codex" in (caught.value.hint or "")


def test_a_program_that_cannot_be_executed_is_an_error(tmp_path: Path) -> None:
    broken = programs.script(tmp_path / "bin/broken")
    broken.write_bytes(b"\x7fELF nonsense")
    work = tmp_path / "work"
    work.mkdir()
    result = agent(work, str(broken)).run(replace(REQUEST, workspace=str(work)))
    assert result.outcome == outcome.ERRORED
    assert "could not be started" in result.message


def test_consent_shows_the_program_that_will_run(tmp_path: Path) -> None:
    """S4: found once, by PATH, outside the repository."""
    repository = tmp_path / "repository"
    programs.script(repository / "bin/tool")
    outside = programs.script(tmp_path / "bin/tool")
    path = f"{repository}/bin:relative::{tmp_path}/bin"
    builder = agent(repository, "tool", "bin/script", path=path)
    assert builder.describe() == (str(outside), "bin/script")
    outside.unlink()
    assert builder.describe() == (str(outside), "bin/script")


@every("name", ["bin/tool", "{root}/bin/tool", "{outside}/link"])
def test_a_program_inside_the_repository_is_refused(tmp_path: Path, name: str) -> None:
    repository = tmp_path / "repository"
    programs.script(repository / "bin/tool")
    (tmp_path / "link").symlink_to("repository/bin/tool")
    with refusing("agent.inside-repository"):
        resolve(name.format(root=repository, outside=tmp_path), PATH, str(repository))


@every("mode", [0o775, 0o757, 0o777])
def test_a_program_that_others_can_change_is_refused(tmp_path: Path, mode: int) -> None:
    program = programs.script(tmp_path / "bin/tool", mode=mode)
    with refusing("agent.writable-by-others"):
        resolve(str(program), "", str(tmp_path / "repository"))


def test_a_folder_or_a_plain_file_is_not_a_program(tmp_path: Path) -> None:
    programs.script(tmp_path / "bin/tool", mode=0o644)
    (tmp_path / "bin/folder").mkdir()
    for name in ("tool", "folder", f"{tmp_path}/bin/tool"):
        with pytest.raises(AdapterError, match="not found"):
            resolve(name, f"{tmp_path}/bin", str(tmp_path / "repository"))


def test_a_multi_call_program_keeps_the_name_it_was_called_by(tmp_path: Path) -> None:
    programs.script(tmp_path / "bin/multi")
    (tmp_path / "bin/tool").symlink_to("multi")
    assert resolve("tool", f"{tmp_path}/bin", str(tmp_path / "r")) == str(tmp_path / "bin/tool")
