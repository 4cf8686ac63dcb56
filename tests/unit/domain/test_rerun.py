"""Evidence rerun elsewhere: how results compare, and the lines that anyone can paste into a shell (R-RUN-13)."""

from __future__ import annotations

import shlex
import subprocess
from pathlib import Path

from idumb.domain import rerun
from idumb.domain.proof import evidence
from idumb.domain.proof.evidence import Evidence
from idumb.domain.rerun import Check


def test_a_result_is_compared_with_the_recorded_one() -> None:
    cases: list[tuple[str | None, str, str]] = [
        (evidence.PASSED, evidence.PASSED, rerun.SAME),
        (evidence.PASSED, evidence.FAILED, rerun.NOW_FAILS),
        (evidence.PASSED, evidence.TIMED_OUT, rerun.NOW_FAILS),
        (evidence.PASSED, evidence.UNPROVEN, rerun.NOW_FAILS),
        (evidence.FAILED, evidence.PASSED, rerun.NOW_PASSES),
        (evidence.FAILED, evidence.ERRORED, rerun.STILL_FAILS),
        (evidence.UNPROVEN, evidence.UNPROVEN, rerun.SAME),
        (evidence.UNPROVEN, evidence.FAILED, rerun.NOW_FAILS),
        (None, evidence.PASSED, rerun.NOW_PASSES),
        (None, evidence.FAILED, rerun.NOW_FAILS),
    ]
    assert not [
        (recorded, now, expected)
        for recorded, now, expected in cases
        if rerun.compare(recorded, Evidence("AC-1", "it holds", now)) != expected
    ]


def test_evidence_about_the_state_before_the_work_is_not_rerun_and_the_last_of_a_subject_counts() -> None:
    subjects = ("precondition 1", "test 1 before", "AC-1", "test 1 after", "AC-1")
    rows = [{"subject": subject, "result": str(number)} for number, subject in enumerate(subjects)]
    assert {name: row["result"] for name, row in rerun.last_of_each(rows).items()} == {"AC-1": "4", "test 1 after": "3"}


COMMANDS = (
    "true",
    "false",
    "test 'a b' = \"a b\"",
    "printf '%s\\n' '$HOME' `echo x` \"it's\" !x",
    "exit 7",
    "true\nfalse",
)


def test_each_command_is_one_line_that_a_shell_runs_as_it_is(tmp_path: Path) -> None:
    checks = [(f"T1-0{number}", Check("AC-1", "it holds", command)) for number, command in enumerate(COMMANDS, 1)]
    lines = rerun.shell_lines([*checks, ("phase", Check("it's so", "again", "true"))])
    assert len(lines) == len(COMMANDS)
    script = "\n".join([f"proof={shlex.quote(str(tmp_path))}", *lines])
    done = subprocess.run(["sh"], input=script, capture_output=True, text=True, check=True, timeout=60)
    assert [line for line in done.stdout.splitlines() if line.startswith("exit ")] == [
        "exit 0: T1-01 AC-1, phase it's so",
        "exit 1: T1-02 AC-1",
        "exit 0: T1-03 AC-1",
        "exit 0: T1-04 AC-1",
        "exit 7: T1-05 AC-1",
        "exit 1: T1-06 AC-1",
    ]


def test_no_command_runs_in_another_folder_if_the_clone_is_missing(tmp_path: Path) -> None:
    [line] = rerun.shell_lines([("T1-01", Check("AC-1", "it holds", f"touch {tmp_path}/ran"))])
    subprocess.run(["sh"], input=f"proof={tmp_path}/none\n{line}\n", capture_output=True, text=True, check=False)
    assert not (tmp_path / "ran").exists()
