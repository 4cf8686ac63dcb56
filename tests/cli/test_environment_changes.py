"""Changes of an agent, its tools or the programs of checks between two attempts of a run (R-ENV-1)."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

from idumb.app.contract import envelopes
from idumb.system import clock
from tests.support import approvals, choices, seed
from tests.support import project as projects
from tests.support.answer import Answer
from tests.support.envelopes import BUILDER, CONFIG, built, differing, kinds, parts, rewrite, shown
from tests.support.gitrepo import GitSandbox
from tests.support.plans import run
from tests.support.prepared import Prepared
from tests.support.project import Project, making, task, write
from tests.support.schemas import validator


@pytest.fixture
def program(tmp_path: Path, project: Project) -> Path:
    """A builder outside the repository that makes TASK.txt, and a configuration that names it."""
    executable = tmp_path / "coder"
    rewrite(executable, BUILDER)
    project.configure(CONFIG.format(program=executable))
    return executable


def test_a_strict_run_stops_at_another_version_of_its_agent_and_continues_only_if_a_person_allows_it(
    project: Project, program: Path
) -> None:
    """R-ENV-1, R-LOCK-4, R-LOG-7: before the next task, and at `resume`; the refusal names the three choices."""
    rewrite(program, f'{BUILDER}sed -i "s/made for/updated for/" {program}\n')
    project.plan([built("T1-01"), built("T1-02", "T1-01")])
    answer = approvals.strict(project)
    assert (answer.code, answer.error["code"]) == (4, "envelope.changed"), answer
    assert answer.error["details"]["parts"] == ["program"]
    assert project.statuses() == {"T1-01": "completed", "T1-02": "ready"}
    again = project.resume()
    assert (again.code, again.error["code"]) == (4, "envelope.changed")
    assert "coder: the agent's program was" in again.error["details"]["evidence"][0]
    assert len(kinds(project, "attempt.started")) == 1
    assert {c["id"]: c["command"] for c in again.error["details"]["choices"]} == {
        "go-on": "idumb resume 1 --accept-changed",
        "go-back": "idumb rollback 1 --to T1-01; idumb resume 1 --accept-changed",
        "start-fresh": "idumb rollback 1 --to start",
    }
    assert choices.refused(project, again) == {}
    assert project.resume("--accept-changed", "--no-verify").code == 0


PROVE = '#!/bin/sh\ntest -e "$1"\n'


def test_programs_that_checks_start_are_in_the_envelope(
    project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """R-ENV-1: path and bytes; programs in the working tree may be changed by tasks."""
    checker = project.repo.write(str(tmp_path / "bin/prove"), PROVE, mode=0o755)
    monkeypatch.setenv("PATH", str(checker.parent), prepend=":")
    project.plan([task("T1-01", files="create `a.txt`", check="prove a.txt", steps=(write("a.txt", "a\n"),))])
    assert run(project, "--no-verify").code == 0
    programs = parts(shown(project, "T1-01"))["checks"]["value"]
    assert programs == {"prove": f"{checker} {hashlib.sha256(PROVE.encode()).hexdigest()}"}
    assert f"prove {checker} " in project.quick("show", "T1-01", "--envelope").out
    (started,) = kinds(project, "attempt.started")
    validator("envelope").validate(started["envelope"])


def test_another_version_of_the_agent_is_recorded_and_named_in_guided_mode(project: Project, program: Path) -> None:
    """R-LOG-7."""
    check = "test -e ok.txt && test -s T1-02.txt"
    project.plan([built("T1-01"), task("T1-02", files="create `T1-02.txt`", check=check, after="T1-01")])
    assert project.execute("--max-attempts", "1").code == 1
    project.repo.write("ok.txt")
    project.repo.commit("ok", "ok.txt")
    rewrite(program, BUILDER.replace("made for", "updated for"))
    answer = project.resume("--retry-failed", "--no-verify")
    assert answer.code == 0, answer.out
    assert any("the agent's program changed" in words for words in answer.object["warnings"])
    (event,) = kinds(project, "envelope.changed")
    assert [(change["binding"], change["part"]) for change in event["changes"]] == [("coder", "program")]


@pytest.mark.nightly
def test_a_program_that_changes_while_the_run_is_locked_is_recorded(
    project: Project, program: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """R-ENV-1: after it was read for the lock, and a while before its files are watched."""
    read = envelopes.current_envelopes

    def changing(*arguments: Any) -> envelopes.EnvelopeSet:
        found = read(*arguments)
        if "updated" not in program.read_text(encoding="utf-8"):
            rewrite(program, BUILDER.replace("made for", "updated for"))
        return found

    project.plan([built("T1-01")])
    approved = project.approval()
    settled = clock.nanoseconds() + 3_000_000_000
    monkeypatch.setattr(clock, "nanoseconds", lambda: settled)
    monkeypatch.setattr(envelopes, "current_envelopes", changing)
    assert project.quick("execute-phase", "1", "--approve", approved, "--no-verify").code == 0
    (event,) = kinds(project, "envelope.changed")
    assert [(change["binding"], change["part"]) for change in event["changes"]] == [("coder", "program")]


@pytest.mark.nightly
def test_an_agent_without_its_key_is_reported_as_such_and_not_as_another_agent(project: Project) -> None:
    """R-ENV-2: the hint names the fix; it does not offer to accept a change that does not exist."""
    options = "environment: [CODER_KEY], options: {base_url: 'http://127.0.0.1:9/v1'}"
    project.configure(f"builder: coder\nbindings: {{coder: {{adapter: model, model: 'openai:m', {options}}}}}\n")
    broken = task("T1-01", files="create `b.txt`", check="test -s c.txt", steps=(write("b.txt", "b\n"),))
    project.plan((broken, built("T1-02", "T1-01")))
    key = {"CODER_KEY": "a-key-of-tests"}
    begun = project.idumb("execute-phase", "1", "--approve", project.approval(), "--json", environment=key)
    assert begun.code == 1, begun.out
    answer = project.json("resume", "1", "--retry-failed")
    assert (answer.code, answer.error["code"]) == (4, "agent.no-key")
    assert "CODER_KEY is not set" in answer.error["message"]
    assert "`export CODER_KEY=...`" in answer.error["hint"]


def test_each_part_is_shown_with_the_text_that_was_hashed(project: Project, program: Path) -> None:
    """R-ENV-1, R-OPS-1: model, prompt template, context, toolchain, tools, rules and configuration."""
    context = "- **Preconditions:**\n  - context `README.md`\n"
    project.plan([built("T1-01", fields=context), making("T1-02", "b.txt", fields=context)])
    assert run(project, "--no-verify").code == 0
    envelope = shown(project, "T1-01")
    by_name = parts(envelope)
    assert (envelope["task"], envelope["attempt"], envelope["builder"]) == ("T1-01", 1, "coder")
    assert by_name["model"]["value"] == "small"
    assert "$acceptance" in by_name["prompt"]["source"]
    assert json.loads(by_name["program"]["source"])["argv"] == [str(program), "--model", "small"]
    assert str(program) in json.loads(by_name["program"]["source"])["files"]
    assert json.loads(by_name["context"]["source"]) == {"README.md": project.repo.git("rev-parse", "HEAD:README.md")}
    assert set(by_name["tools"]["value"]) == {"git", "python"}
    assert json.loads(by_name["rules"]["source"])[1]["name"] == "validator"
    assert json.loads(by_name["configuration"]["source"])["builder"] == "coder"
    assert by_name["policy"]["absent"] is True
    lines = [line.split() for line in project.quick("show", "t1-01", "--envelope").out.splitlines()]
    assert [line for line in lines if line[:1] in (["model:"], ["policy:"])] == [
        ["model:", "small"],
        ["policy:", "none"],
    ]
    assert set(differing(project, "T1-01", "T1-02")) == {"adapter", "program", "model", "binding", "prompt"}


def test_lock_in_shows_checks_levels_and_confidence(project: Project) -> None:
    """R-GATE-6: the lock shows a confidence score and its parts."""
    criteria = "  - [ ] it is there — check: `test -s a.txt`\n  - [ ] it reads well — opinion\n"
    project.plan([making("T1-01", "a.txt", criteria=criteria)])
    answer = project.quick("execute-phase", "1", "--approve", project.approval(), "--no-verify")
    assert "Locked in: confidence 0." in answer.err
    assert "1 of 2 criteria and tests are proven by commands" in answer.err
    (locked,) = kinds(project, "run.locked")
    assert 0 < locked["confidence"] < 1
    assert [part["name"] for part in locked["parts"]] == ["checks", "proofs", "coverage", "files", "reversible"]
    assert {rule["name"]: rule["level"] for rule in locked["levels"]} == {"size": 1, "validator": 1}
    begun = [e["kind"] for e in project.events("1") if e["kind"] in {"run.locked", "attempt.started"}]
    assert begun[0] == "run.locked"


def program_of(project: Project) -> Path:
    return project.folder.parent / "coder"


def chancy(project: Project, more: str = "") -> None:
    """Let the builder write how often it was called."""
    counter = project.folder.parent / "count"
    rewrite(program_of(project), f'#!/bin/sh\necho x >> {counter}\nwc -l < {counter} > "$IDUMB_TASK.txt"\n{more}')


def _once(sandbox: GitSandbox) -> Project:
    """A phase that ran and was rolled back, with a builder that never writes the same file twice."""
    project = projects.create(sandbox)
    chancy(project)
    project.configure(CONFIG.format(program=program_of(project)))
    project.plan([built("T1-01")])
    assert run(project, "--no-verify").code == 0
    assert project.quick("rollback", "1", "--to", "start", "--yes").code == 0
    return project


@pytest.fixture
def once(prepared: Prepared) -> Project:
    project = prepared.get(_once)
    chancy(project)  # it is beside the repository, and another test may have changed it
    return project


def resumed(project: Project, *flags: str) -> Answer:
    return project.quick("resume", "1", *flags, "--no-verify", "--json")


def test_the_same_request_with_another_result_is_reported_and_refused_in_deterministic_mode(once: Project) -> None:
    """R-ENV-2: both attempts are named, and the run continues. Attempts of other runs count. No retry."""
    answer = resumed(once)
    assert answer.code == 0, answer.out
    (event,) = kinds(once, "nondeterminism.found")
    assert (event["paths"], event["earlier"]["attempt"], event["refused"]) == (["T1-01.txt"], 1, False)
    assert any("T1-01 left other bytes in T1-01.txt than run" in w for w in answer.object["warnings"])
    assert once.repo.git("show", f"{event['earlier']['tree']}:T1-01.txt") != once.read("T1-01.txt").strip()
    assert once.quick("rollback", "1", "--to", "start", "--yes").code == 0
    answer = resumed(once, "--deterministic")
    assert answer.code == 1
    row = answer.data["tasks"][0]
    assert (row["status"], row["attempts"]) == ("failed", 1)
    assert row["reason"].startswith("not deterministic: T1-01.txt differ from run")
    assert [found["refused"] for found in kinds(once, "nondeterminism.found")].count(True) == 1
    assert len(kinds(once, "nondeterminism.found")) == 2


@pytest.mark.parametrize("base", seed.one_on_a_push([True, False], "what differs"))
def test_another_result_on_another_base_or_of_another_version_is_not_reported(once: Project, *, base: bool) -> None:
    """R-ENV-2: what the builder started from, or its environment, differs, so the difference proves nothing."""
    if base:
        once.repo.commit_with({"elsewhere.txt": "the user's\n"}, "elsewhere", "elsewhere.txt")
    else:
        chancy(once, "# new\n")
    assert resumed(once, "--deterministic").code == 0
    assert kinds(once, "nondeterminism.found") == []
