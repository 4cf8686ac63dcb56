"""Declared tool calls: what each does, and that none reaches outside the workspace (R-PLAN-7, R-LOG-3)."""

from __future__ import annotations

import base64
import ctypes
import functools
import hashlib
import json
import os
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from idumb.agents.adapter import Equipment
from idumb.agents.steps import StepsAgent
from idumb.domain import outcome
from idumb.domain.agent import BUILDER, AgentRequest, AgentResult
from idumb.domain.plans import plan
from idumb.domain.settings import Binding, Settings
from idumb.system.redaction import Redactor
from tests.support.cases import every

ENVIRONMENT = {"PATH": os.environ["PATH"]}


def workspace(tmp_path: Path) -> Path:
    """Make a workspace next to a folder that no step may reach."""
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside/victim").write_text("safe", encoding="utf-8")
    folder = tmp_path / "work"
    folder.mkdir()
    return folder


@pytest.fixture
def work(tmp_path: Path) -> Path:
    return workspace(tmp_path)


def step(tool: str, index: int = 0, **arguments: Any) -> plan.Step:
    return plan.Step(index, tool, "the intent", {k.removesuffix("_"): v for k, v in arguments.items()}, line=40 + index)


def run(
    work: Path,
    *steps: plan.Step,
    allowed: tuple[str, ...] = (),
    protected: tuple[str, ...] = (),
    deadline: float | None = None,
    apply_patch: Callable[..., tuple[bool, str]] = lambda *_: (False, "unexpected"),
    redact: Callable[[str], str] = lambda text: text,
) -> AgentResult:
    equipment = Equipment(Settings(), str(work), apply_patch, redact, environment=lambda _: ENVIRONMENT)
    agent = StepsAgent(Binding("steps", "steps"), equipment)
    task = plan.Task("T1-01", "Work", steps=steps)
    request = AgentRequest(
        BUILDER, task, "", str(work), allowed, deadline=deadline, protected=protected, run_id="run-1"
    )
    return agent.run(request)


def completed(work: Path, *steps: plan.Step, **options: Any) -> AgentResult:
    result = run(work, *steps, **options)
    assert result.outcome == outcome.COMPLETED, result.message
    return result


def refused(work: Path, *steps: plan.Step, **options: Any) -> str:
    before = tree(work.parent)
    result = run(work, *steps, **options)
    assert result.outcome == outcome.FAILED
    assert tree(work.parent) == before
    return result.message


def tree(folder: Path) -> dict[str, bytes | str]:
    """Every path below `folder` with its bytes, link target or kind."""
    entries: dict[str, bytes | str] = {}
    for path in sorted(folder.rglob("*")):
        name = str(path.relative_to(folder))
        if path.is_symlink():
            entries[name] = "-> " + os.readlink(path)
        else:
            entries[name] = path.read_bytes() if path.is_file() else "folder"
    return entries


def test_files_are_written_with_their_folders(work: Path) -> None:
    result = completed(work, step("write_file", path="src/deep/a.py", content="é\r\n\n"))
    assert (work / "src/deep/a.py").read_bytes() == "é\r\n\n".encode()
    assert (work / "src/deep/a.py").stat().st_mode & 0o777 == 0o644
    assert result.claimed_files == ("src/deep/a.py",)
    assert result.steps[0].response == "wrote 5 bytes"


def test_any_bytes_can_be_written(work: Path) -> None:
    data = bytes(range(256)) * 5000
    completed(
        work,
        step("write_file", path="packed", content_base64=base64.encodebytes(data).decode()),
        step("write_file", 1, path="text", content=data.decode("utf-8", "surrogateescape")),
    )
    assert (work / "packed").read_bytes() == data
    assert (work / "text").read_bytes() == data


@every("mode, expected", [("755", 0o755), ("0644", 0o644), (755, 0o755), (0o755, 0o755)])
def test_a_file_mode_can_be_set(tmp_path: Path, mode: object, expected: int) -> None:
    work = workspace(tmp_path)
    completed(work, step("write_file", path="a", content="", mode=mode))
    assert (work / "a").stat().st_mode & 0o777 == expected


def test_an_existing_file_keeps_its_mode(work: Path) -> None:
    (work / "tool").write_text("old", encoding="utf-8")
    (work / "tool").chmod(0o750)
    completed(
        work, step("write_file", path="tool", content="new"), step("edit_file", 1, path="tool", find="new", replace="x")
    )
    assert (work / "tool").stat().st_mode & 0o777 == 0o750
    assert (work / "tool").read_text(encoding="utf-8") == "x"


def test_an_edit_replaces_exactly_the_expected_number_of_matches(work: Path) -> None:
    (work / "a").write_bytes(b"one two one \xff\r\n")
    completed(work, step("edit_file", path="a", find="one", replace="1", count=2))
    assert (work / "a").read_bytes() == b"1 two 1 \xff\r\n"


def test_an_edit_that_does_not_match_names_step_line_and_count(work: Path) -> None:
    (work / "a").write_text("one one", encoding="utf-8")
    assert refused(work, step("edit_file", path="a", find="two", replace="")) == (
        "step 1 (edit_file a, line 40): found 0 matches of 'two', expected 1"
    )
    assert "found 2 matches of 'one', expected 1" in refused(work, step("edit_file", path="a", find="one", replace=""))


def test_files_are_deleted_and_moved_and_folders_are_created(work: Path) -> None:
    (work / "gone").touch()
    (work / "old").write_text("kept", encoding="utf-8")
    result = completed(
        work,
        step("delete_file", path="gone"),
        step("move_file", 1, from_="old", to="new/place"),
        step("make_directory", 2, path="a/b/c"),
        step("make_directory", 3, path="a/b/"),
    )
    assert tree(work) == {
        "a": "folder",
        "a/b": "folder",
        "a/b/c": "folder",
        "new": "folder",
        "new/place": b"kept",
    }
    assert result.claimed_files == ("gone", "old", "new/place", "a/b/c", "a/b/")


@every(
    "bad, words",
    [
        (step("delete_file", path="absent"), "does not exist"),
        (step("delete_file", path="folder"), "is a folder"),
        (step("move_file", from_="file", to="other"), "already exists"),
        (step("move_file", from_="folder", to="elsewhere"), "is a folder"),
        (step("edit_file", path="absent", find="a", replace="b"), "does not exist"),
        (step("edit_file", path="folder", find="a", replace="b"), "not a regular file"),
        (step("edit_file", path="file", find="", replace="b"), "`find` is empty"),
        (step("edit_file", path="pipe", find="a", replace="b"), "not a regular file"),
        (step("write_file", path="folder", content=""), "is a folder"),
        (step("write_file", path="file/below", content=""), "not a folder"),
        (step("write_file", path="a"), "needs `content`"),
        (step("write_file", path="a", content_base64="!"), "not base64"),
        (step("write_file", path="a", content="\ud800"), "surrogate"),
        (step("write_file", path="a", content="", mode="777"), "644 or 755"),
        (step("write_file", content=""), "`path` is missing"),
        (step("write_file", path=7, content=""), "`path` must be a string"),
        (step("write_file", path="x" * 300, content=""), "name too long"),
        (step("run", argv=["true", "a\0b"]), "NUL"),
    ],
)
def test_an_impossible_step_fails_and_changes_nothing(tmp_path: Path, bad: plan.Step, words: str) -> None:
    work = workspace(tmp_path)
    for name in ("file", "other"):
        (work / name).write_text(name, encoding="utf-8")
    (work / "folder").mkdir()
    os.mkfifo(work / "pipe")
    result = run(work, bad)
    assert result.outcome == outcome.FAILED
    assert words.casefold() in result.message.casefold()
    assert not list(work.rglob("*.tmp"))
    assert (work / "other").read_text(encoding="utf-8") == "other"


HOSTILE = [
    "../outside/victim",
    "a/../../outside/victim",
    "/etc/passwd",
    "C:\\temp\\x",
    "~/x",
    "",
    ".",
    "./a",
    "a//b",
    "a\0b",
    ".git/hooks/pre-commit",
    ".GIT/config",
    ".git",
    ".g\u200cit/config",
    "sub/.Git/config",
    ".idumb/config.yaml",
    ".planning/phases/1/01-PLAN.md",
    ".github/workflows/ci.yml",
    ".env",
    "secret/key",
]


@every("path", HOSTILE)
@every("tool", ["write_file", "edit_file", "delete_file", "move from", "move to", "make_directory"])
def test_no_tool_accepts_a_path_outside_or_a_protected_path(work: Path, tool: str, path: str) -> None:
    """S6."""
    (work / "here").write_text("x", encoding="utf-8")
    arguments: dict[str, Any] = {"path": path, "content": "x", "find": "safe", "replace": "x"}
    if tool.startswith("move"):
        arguments = {"from": "here", "to": path} if tool == "move to" else {"from": path, "to": "there"}
    refused(work, step(tool.replace(" from", "_file").replace(" to", "_file"), **arguments), protected=("secret/**",))


def test_a_conditionally_protected_path_can_be_declared(work: Path) -> None:
    completed(work, step("write_file", path=".env", content="A=1"), allowed=(".env",))
    assert (work / ".env").exists()


def test_a_step_stays_inside_its_scope(work: Path) -> None:
    outside = plan.Step(0, "write_file", "", {"path": "b/x", "content": ""}, scope=("a/**",))
    assert "outside the step's scope a/**" in refused(work, outside)
    completed(work, plan.Step(0, "write_file", "", {"path": "a/x", "content": ""}, scope=("a/**",)))


@every("link", ["../outside", "/", "."])
@every("tool", ["write_file", "edit_file", "delete_file", "make_directory"])
def test_a_symlinked_folder_is_not_entered(tmp_path: Path, tool: str, link: str) -> None:
    """R-LOCK-5."""
    work = workspace(tmp_path)
    (work / "link").symlink_to(link)
    message = refused(work, step(tool, path="link/victim", content="x", find="safe", replace="x"))
    assert "symbolic link" in message


def test_no_tool_follows_a_link(work: Path) -> None:
    """A deletion removes it, and a write takes its place."""
    (work / "link").symlink_to("../outside/victim")
    assert "symbolic link" in refused(work, step("edit_file", path="link", find="safe", replace="x"))
    completed(work, step("delete_file", path="link"))
    (work / "link").symlink_to("../outside/victim")
    completed(work, step("write_file", path="link", content="mine"))
    assert (work / "link").read_text(encoding="utf-8") == "mine"
    assert not (work / "link").is_symlink()
    assert (work.parent / "outside/victim").read_text(encoding="utf-8") == "safe"


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux exchanges two names at once")
def test_a_folder_that_becomes_a_link_during_use_leads_nowhere(work: Path) -> None:
    """S6: a second thread exchanges folder and link for as long as steps write below it."""
    (work / "dir").mkdir()
    (work / "link").symlink_to("../outside")
    exchange = functools.partial(
        ctypes.CDLL(None).renameat2, -100, os.fsencode(work / "dir"), -100, os.fsencode(work / "link"), 2
    )
    stop = threading.Event()
    rounds: list[int] = []

    def flip() -> None:
        while not stop.is_set():
            rounds.append(exchange())

    thread = threading.Thread(target=flip)
    thread.start()
    try:
        steps = [
            plan.Step(i, "write_file", "", {"path": f"dir/{i}", "content": ""}, continue_on_error=True)
            for i in range(1000)
        ]
        result = run(work, *steps)
    finally:
        stop.set()
        thread.join()
    assert set(rounds) == {0}
    assert {s.ok for s in result.steps} == {True, False}
    assert os.listdir(work.parent / "outside") == ["victim"]


def test_the_first_failing_step_ends_the_attempt(work: Path) -> None:
    result = run(
        work,
        step("write_file", path="a", content="a"),
        step("delete_file", 1, path="absent"),
        step("write_file", 2, path="b", content="b"),
    )
    assert result.outcome == outcome.FAILED
    assert result.message == "step 2 (delete_file absent, line 41): absent does not exist"
    assert [s.ok for s in result.steps] == [True, False]
    assert sorted(tree(work)) == ["a"]


def test_a_step_can_allow_the_following_steps_to_continue(work: Path) -> None:
    lenient = plan.Step(0, "delete_file", "", {"path": "absent"}, continue_on_error=True)
    result = completed(work, lenient, step("write_file", 1, path="b", content="b"))
    assert [s.ok for s in result.steps] == [False, True]


def test_an_unknown_tool_is_an_error_with_the_known_names(work: Path) -> None:
    result = run(work, step("format_disk", path="a"))
    assert result.outcome == outcome.ERRORED
    assert "tools: write_file" in result.message


def test_the_audit_keeps_short_arguments_and_digests_of_long_ones(work: Path) -> None:
    long = "é" * 150
    result = completed(work, step("write_file", path="a", content=long), step("run", 1, argv=["echo", "token-123"]),
                       redact=lambda text: text.replace("token-123", "[redacted]"))  # fmt: skip
    assert result.steps[0].arguments == {
        "path": "a",
        "content": {"sha256": hashlib.sha256(long.encode()).hexdigest(), "bytes": 300},
    }
    assert result.steps[1].arguments == {"argv": ["echo", "[redacted]"]}
    assert result.steps[1].response == "[redacted]\n"
    assert (result.steps[0].tool, result.steps[0].intent) == ("write_file", "the intent")


@pytest.mark.parametrize("secret", ["Authorization:\tBearer abcdef123456", json.dumps(json.dumps('pa"ss\\word'))])
def test_the_audit_redacts_what_text_shows_and_json_would_hide(work: Path, secret: str) -> None:
    redactor = Redactor({"KEY": 'pa"ss\\word'})
    result = completed(work, step("run", argv=["true", secret]), redact=redactor.redact)
    assert result.steps[0].arguments == {"argv": ["true", redactor.redact(secret)]}
    assert redactor.redact(secret) != secret


def test_commands_run_in_the_workspace_without_a_shell(work: Path) -> None:
    completed(
        work,
        step("run", command="pwd -P > where; echo $IDUMB_TASK $IDUMB_RUN >> where"),
        step("run", 1, argv=["touch", "a b; $(touch c)"]),
    )
    assert (work / "where").read_text(encoding="utf-8") == f"{os.path.realpath(work)}\nT1-01 run-1\n"
    assert sorted(tree(work)) == ["a b; $(touch c)", "where"]


@every(
    "bad, ended, words",
    [
        (step("run", command="echo why; exit 3"), outcome.FAILED, "exit 3, expected 0: why"),
        (step("run", command="exit 127"), outcome.ERRORED, "exit 127: a program was not found"),
        (step("run", command="exit 126"), outcome.ERRORED, "not executable"),
        (step("run", argv=["no-such-program-here"]), outcome.ERRORED, "could not be started"),
        (step("run", command="true", expect_exit=1), outcome.FAILED, "exit 0, expected 1"),
        (step("run", command="exit 3", expect_exit=3), outcome.COMPLETED, ""),
        (step("run", command="kill -9 $$"), outcome.FAILED, "ended by signal 9"),
        (step("run", command="echo on; sleep 1000", timeout=0.5), outcome.TIMED_OUT, "stopped after 0.5 s ("),
        (step("run", command="trap 'exit 0' TERM; sleep 1000", timeout=0.5), outcome.TIMED_OUT, "stopped after 0.5 s"),
    ],
)
def test_the_result_of_a_command_is_the_result_of_its_step(
    tmp_path: Path, bad: plan.Step, ended: str, words: str
) -> None:
    work = workspace(tmp_path)
    result = run(work, bad)
    assert result.outcome == ended
    assert words in result.message


def test_the_message_has_the_end_of_the_output_and_the_record_all_that_was_kept(work: Path) -> None:
    result = run(work, step("run", command="i=0; while [ $i -lt 99 ]; do echo line $i; i=$((i+1)); done; exit 1"))
    assert result.message == ("step 1 (run, line 40): exit 1, expected 0: line 94\nline 95\nline 96\nline 97\nline 98")
    assert result.steps[0].response.startswith("line 0\n")


def test_the_task_s_deadline_ends_all_steps(work: Path) -> None:
    lenient = plan.Step(0, "run", "", {"command": "sleep 1000"}, continue_on_error=True)
    result = run(work, lenient, step("write_file", 1, path="a", content=""), deadline=0.2)
    assert result.outcome == outcome.TIMED_OUT
    assert len(result.steps) == 1
    assert tree(work) == {}


def test_patches_are_applied_by_the_caller_who_gets_the_writable_paths(work: Path) -> None:
    calls: list[str | None] = []

    def apply(patch: str, allowed: Callable[[str], str | None]) -> tuple[bool, str]:
        calls.extend(allowed(path) for path in ("src/a.py", ".git/config", "../x"))
        return patch == "the patch", "applied"

    completed(work, step("apply_patch", patch="the patch"), apply_patch=apply)
    assert calls == [None, "is protected by .git", "leads out of the workspace (..)"]
    assert run(work, step("apply_patch", patch="other"), apply_patch=apply).outcome == outcome.FAILED


def test_deleting_or_moving_a_file_removes_its_empty_folders(work: Path) -> None:
    """A file can then replace the folder, as happens in git histories."""
    for name in ("gone/deep/a", "moved/deep/b", "kept/c", "kept/d"):
        (work / name).parent.mkdir(parents=True, exist_ok=True)
        (work / name).write_text("x", encoding="utf-8")
    completed(
        work,
        step("delete_file", path="gone/deep/a"),
        step("write_file", path="gone", content="a file now"),
        step("move_file", from_="moved/deep/b", to="b"),
        step("delete_file", path="kept/c"),
    )
    assert sorted(tree(work)) == ["b", "gone", "kept", "kept/d"]
