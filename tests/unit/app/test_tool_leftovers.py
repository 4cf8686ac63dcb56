"""Files that tools leave count nowhere: not as work, not as a deviation, not as a change that spoils anything."""

from __future__ import annotations

from idumb.domain.agent import AgentRequest, AgentResult
from tests.support.cases import every
from tests.support.engine_run import EngineRun, Files, Work, make_own_files, task

PYC, SWAP = "src/__pycache__/a.pyc", ".README.swp"


def leaving(*paths: str, own: bool = True) -> Work:
    """Return a builder that also leaves these files."""

    def work(request: AgentRequest, files: Files) -> None:
        if own:
            make_own_files(request, files)
        for path in paths:
            files[path] = files.get(path, b"") + request.subject.encode()

    return work


def touched(run: EngineRun) -> list[list[str]]:
    return [event.payload["touched"] for event in run.events("attempt.finished")]


def test_where_the_project_tracks_such_files_they_count() -> None:
    run = EngineRun(task("A"), work=leaving(PYC))
    run.repository.files["src/__pycache__/mine.pyc"] = b"mine"
    run.repository.commit_all()
    assert run.run().kind != "done"
    assert run.events("attempt.finished")[0].payload["deviations"] == [PYC]


def test_a_task_may_declare_them_by_name_but_a_wide_glob_does_not_take_them_in() -> None:
    run = EngineRun(task("A", files=["src/__pycache__/**"], verify=("true",)), work=leaving(PYC, own=False))
    assert run.run().kind == "done"
    assert touched(run) == [[PYC]]
    wide = EngineRun(task("A", files=["src/**"], verify=("true",)), work=leaving(PYC, "src/a.py", own=False))
    wide.repository.files[PYC] = b"uncommitted, and no reason to refuse the task"
    assert wide.run().kind == "done"
    assert touched(wide) == [["src/a.py"]]


def test_what_a_task_declared_counts_for_later_tasks() -> None:
    first = task("A", files=["target/**"], verify=("true",))

    def work(_: AgentRequest, files: Files) -> None:
        files["target/a.txt"] = files.get("target/a.txt", b"") + b"x"

    run = EngineRun(first, task("B", "A"), work=work)
    run.repository.files["Cargo.toml"] = b""
    assert run.run().kind != "done"
    assert run.events("attempt.finished")[1].payload["deviations"] == ["target/a.txt"]


@every("beside, kind", [("Cargo.toml", "done"), ("pom.xml", "halted")])
def test_a_folder_that_needs_a_file_beside_it(beside: str, kind: str) -> None:
    run = EngineRun(task("A"), work=leaving("target/debug/a"))
    run.repository.files[beside] = b""
    run.repository.commit_all()
    assert (run.run().kind == "done") is (kind == "done")


def test_they_are_no_reason_against_another_call() -> None:
    def work(request: AgentRequest, files: Files) -> AgentResult | None:
        files[".aider.chat.history.md"] = b"history"
        if len(run.calls) == 1:
            return AgentResult("failed", "429", failure="rate-limited")
        make_own_files(request, files)
        return None

    run = EngineRun(task("A"), work=work)
    assert run.run().kind == "done"
