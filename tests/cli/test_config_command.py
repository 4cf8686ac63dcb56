"""`idumb config`: settings are listed with their source, and changed without touching anything else."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest

from idumb.markdown import single_settings
from tests.support import ended_runs
from tests.support.plans import run
from tests.support.prepared import Prepared
from tests.support.project import IDUMB, Project, failing_task, making

PLACE = ".idumb/config.yaml"
EDITS = [
    ("", "run.max_attempts", "5", "run:\n  max_attempts: 5\n"),
    ("# mine", "run.max_attempts", "5", "# mine\nrun:\n  max_attempts: 5\n"),
    ("git: {hooks: true}  # why\n", "git.hooks", "false", "git: {hooks: false}  # why\n"),
    ("git: {hooks: true}\n", "git.commit", "none", "git: {commit: none, hooks: true}\n"),
    ("git:\n    hooks: true # a\n\n", "git.commit", "none", "git:\n    commit: none\n    hooks: true # a\n\n"),
    ("run:\n", "run.halt_after", "2", "run: {halt_after: 2}\n"),
    ("run:\r\n  halt_after: 1\r\n", "run.max_attempts", "2", "run:\r\n  max_attempts: 2\r\n  halt_after: 1\r\n"),
    ("git: {}\n", "roles.planner.ceiling.tokens", "9", "git: {}\nroles:\n  planner:\n    ceiling:\n      tokens: 9\n"),
    ("protected: [a]\n", "protected", "[a, 'b c/**']", "protected: [a, 'b c/**']\n"),
]


def test_a_setting_is_changed_and_no_other_byte(project: Project) -> None:
    for before, name, value, after in EDITS:
        (project.folder / PLACE).write_bytes(before.encode())
        changed = project.json("config", "set", name, value)
        assert changed.code == 0, changed.out
        assert (project.folder / PLACE).read_bytes().decode() == after
        (row,) = project.json("config", "explain", name).data["settings"]
        assert (row["value"], row["source"].partition(":")[0]) == (value, PLACE)


def test_a_text_needs_no_quotes(project: Project) -> None:
    for typed, written in (
        ("{title}", '"{title}"'),
        ("fix #1: {id}", '"fix #1: {id}"'),
        ("'a'", "'a'"),
        ("a b", "a b"),
    ):
        (project.folder / PLACE).write_text("git:\n  message: x\n", encoding="utf-8")
        assert project.json("config", "set", "git.message", typed).code == 0, typed
        assert project.read(PLACE) == f"git:\n  message: {written}\n"
    assert project.json("config", "set", "git.branch_name", "{phase}").code == 0
    assert project.read(PLACE) == 'git:\n  branch_name: "{phase}"\n  message: a b\n'


def test_what_cannot_be_set_is_refused_and_nothing_is_written(project: Project) -> None:
    text = "protected:\n  - a\n  - b\n"
    (project.folder / PLACE).write_text(text, encoding="utf-8")
    refused = {
        ("run.max_attempts", "many"): "config.invalid",
        ("run.max_atempts", "3"): "config.unknown-setting",
        ("run", "3"): "config.section",
        ("protected", "[c]"): "config.not-editable",
        ("git.hooks", "true\nrun: {halt_after: 1}"): "config.invalid",
        ("git.message", "\udcff"): "usage",
    }
    for (name, value), code in refused.items():
        assert project.json("config", "set", name, value).error["code"] == code
        assert (project.folder / PLACE).read_text(encoding="utf-8") == text
    assert "run.max_attempts" in project.json("config", "set", "run.max_atempts", "3").error["message"]
    for data, code in ((b"git: \xff\n", "config.invalid"), (b"git: 5\n", "config.not-editable")):
        (project.folder / PLACE).write_bytes(data)
        assert project.json("config", "set", "git.hooks", "true").error["code"] == code
        assert (project.folder / PLACE).read_bytes() == data


def test_an_unfinished_run_is_named_if_it_cannot_continue_with_the_new_setting(prepared: Prepared) -> None:
    project = prepared.get(ended_runs.failed)
    for name, value, warned in (("snapshot.keep", "1", 0), ("run.halt_after", "2", 1)):
        assert len(project.json("config", "set", name, value).object["warnings"]) == warned, name


def test_the_user_s_settings_are_in_another_file(project: Project, home: Path) -> None:
    """R-OPS-4."""
    (project.folder / PLACE).write_text("run: {halt_after: 2}\n", encoding="utf-8")
    assert project.json("config", "set", "notify.desktop", "true").code == 0
    rows = {row["name"]: row for row in project.json("config", "list").data["settings"]}
    assert rows.keys() == {"run.halt_after", "notify.desktop"}
    assert rows["notify.desktop"]["file"] == "user"
    assert str(home) in rows["notify.desktop"]["source"]
    every = {row["name"]: row for row in project.json("config", "list", "--all").data["settings"]}
    assert (every["run.max_attempts"]["default"], every["run.max_attempts"]["source"]) == (3, "default")
    assert project.json("config", "get", "run.halt_after").data["settings"][0]["value"] == "2"
    assert [row["file"] for row in project.json("config", "path").data["files"]] == ["project", "user"]
    shown = project.quick("config", "explain", "run.max_attempts").out
    assert "a whole number of at least 1" in shown


def test_a_flag_overrides_any_setting_that_a_variable_may_override(project: Project) -> None:
    """R-OPS-4: each command is a process of its own, as for a user, and forgets the flag."""
    (project.folder / PLACE).write_text("run: {max_attempts: 2}\n", encoding="utf-8")
    above = {"IDUMB_RUN_MAX_ATTEMPTS": "3"}
    command = ("--set", "run.max_attempts=1", "--set", "run.halt_after=1")
    shown = project.idumb(*command, "config", "get", "run.max_attempts", "--json", environment=above)
    assert [row["value"] for row in shown.data["settings"]] == ["1"]
    project.plan([failing_task("T1-01", "a.txt")])
    consent = project.idumb(*command, "check-plan", "1", "--json", environment=above).data["consent_hash"]
    assert project.idumb(*command, "execute-phase", "1", "--approve", consent, environment=above).code == 1
    assert len(project.events("--kind", "attempt.started")) == 1
    assert project.json("config", "get", "run.max_attempts").data["settings"][0]["value"] == "2"
    for setting, code in (
        ("run.max_attempts", "usage"),
        ("run.most=1", "config.unknown-setting"),
        ("checks.home=user", "config.variable"),
        ("run.max_attempts=many", "config.variable"),
        ("git.message=\udcff", "config.variable"),
    ):
        for words in (("check-plan", "1"), ("status",)):  # status reads no setting
            refused = project.idumb("--set", setting, *words, "--json")
            assert (refused.error["code"], refused.code) == (code, 2), (setting, words)


def test_a_variable_overrides_the_file_unless_consent_or_trust_depends_on_it(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    """R-OPS-4."""
    (project.folder / PLACE).write_text("run: {max_attempts: 2}\n", encoding="utf-8")
    monkeypatch.setenv("IDUMB_RUN_MAX_ATTEMPTS", "1")
    (row,) = project.json("config", "explain", "run.max_attempts").data["settings"]
    assert (row["value"], row["source"]) == ("1", "IDUMB_RUN_MAX_ATTEMPTS")
    project.plan([failing_task("T1-01", "a.txt")])
    assert run(project).code == 1
    assert len(project.events("--kind", "attempt.started")) == 1
    assert run(project, "--force", "--max-attempts", "2").code == 1, "a flag is above it"
    wrong, refused = {"RUN_MAX_ATTEMPTS": "many", "GIT_MESSAGE": "a: {b"}, {"PROTECTED": "[]", "GIT_HOOKS": "false"}
    for name, value in (wrong | refused).items():
        monkeypatch.setenv(f"IDUMB_{name}", value)
        error = project.json("check-plan", "1").error
        assert (error["code"], f"IDUMB_{name}:" in error["message"]) == ("config.variable", name in wrong), value
        assert not re.search(r":\d", error["message"]), "a variable has no lines"
        monkeypatch.delenv(f"IDUMB_{name}")
    with monkeypatch.context() as given:
        given.setenv("IDUMB_RUN_MAXATTEMPTS", "1")
        error = project.json("check-plan", "1").error
        assert error["message"] == "There is no setting IDUMB_RUN_MAXATTEMPTS; did you mean `IDUMB_RUN_MAX_ATTEMPTS`?"
    for empty in ("", "~ # none"):
        monkeypatch.setenv("IDUMB_ASK_TIMEOUT", empty)
        assert project.quick("check-plan", "1").code == 0
    monkeypatch.setenv("IDUMB_RETRY_CALLS", "2")
    assert single_settings.load(str(project.folder)).retry == {"calls": 2}
    monkeypatch.setenv("IDUMB_GIT_BRANCH_NAME", "null#1")  # a comment begins behind a space
    (row,) = [row for row in project.json("config", "list").data["settings"] if row["name"] == "git.branch_name"]
    assert row["value"] == "null#1"


def completed(project: Project, *words: str) -> list[str]:
    """Return what `words` can become; the last one is incomplete. Nothing may be said to the terminal."""
    asked = {"COMP_WORDS": " ".join(words), "COMP_CWORD": str(len(words) - 1), "_IDUMB_COMPLETE": "bash_complete"}
    done = subprocess.run(
        [*IDUMB], cwd=project.start, env={**os.environ, **asked}, capture_output=True, text=True, check=False
    )
    assert (done.stderr, done.returncode) == ("", 0)
    return [line.partition(",")[2] for line in done.stdout.splitlines() if line]


@pytest.mark.nightly
def test_commands_phases_and_tasks_are_completed(project: Project) -> None:
    project.plan([making("T1-01", "a.txt"), making("T1-02", "b.txt")])
    assert completed(project, "idumb", "dlq", "re") == ["retry"]
    assert completed(project, "idumb", "execute-phase", "") == ["1"]
    assert completed(project, "idumb", "exceute", "1") == []
    assert completed(project, "idumb", "show", "t1-0") == ["T1-01", "T1-02"]
