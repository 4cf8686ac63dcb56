"""The git program as it is started."""

from __future__ import annotations

import os
import threading

import pytest

from idumb.git import git_program
from idumb.system import child_process, process_end
from tests.support.gitrepo import GitSandbox


@pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="needs /proc to see what a process reads from")
def test_git_gets_all_its_input_before_it_starts(sandbox: GitSandbox) -> None:
    """F30, R-GIT-2: of a pipe whose writer is killed git reads the end, and commits the paths it has, even none."""
    output = git_program.read(str(sandbox.root), ["-c", "alias.x=!readlink /proc/self/fd/0; cat", "x"], b"a\0b\0").out
    source, _, given = output.partition(b"\n")
    assert not source.startswith(b"pipe:")
    assert given == b"a\0b\0"


def test_large_input_and_output_do_not_deadlock(sandbox: GitSandbox) -> None:
    data = b"x" * (1 << 20)
    assert git_program.read(str(sandbox.root), ["-c", "alias.x=!cat", "x"], data).out == data


def test_a_git_program_inside_the_repository_is_skipped(sandbox: GitSandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    """S4: neither the current folder nor the working tree decides which git program runs."""
    marker = sandbox.root / "ran"
    for folder in ("", "bin/"):
        sandbox.write(f"{folder}git", f"#!/bin/sh\ntouch {marker}\n", mode=0o755)
    monkeypatch.setenv("PATH", f".::bin:{sandbox.root}/bin:{os.environ['PATH']}")
    monkeypatch.chdir(sandbox.root)
    git_program.path.cache_clear()
    try:
        assert git_program.output(str(sandbox.root), ["version"]).startswith(b"git version")
        output = git_program.output(str(sandbox.root), ["-c", "alias.x=!git version; echo $PATH", "x"]).decode()
    finally:
        git_program.path.cache_clear()
    assert "." not in output.splitlines()[-1].split(os.pathsep)
    assert git_program.path().startswith("/")


@pytest.mark.skipif(not process_end.adopt_orphans(), reason="only Linux lets idumb end what a program left")
def test_a_program_that_ends_in_another_thread_does_not_end_git(sandbox: GitSandbox) -> None:
    """F30, R-RUN-8: git would seem to have succeeded without output, and a scan would be of no files."""
    started, over = sandbox.root / "started", sandbox.root / "over"
    for pipe in (started, over):
        os.mkfifo(pipe)

    def other() -> None:
        child_process.run(["/bin/cat", str(started)], cwd="/", environment={}, grace=0.1)
        os.write(os.open(over, os.O_RDWR), b"whole\n")

    thread = threading.Thread(target=other)
    thread.start()
    alias = f"alias.x=!echo x > {started}; head -n 1 {over}"
    output = git_program.output(str(sandbox.root), ["-c", alias, "x"])
    thread.join()
    assert output == b"whole\n"


def test_an_object_that_a_remote_promises_is_not_fetched(sandbox: GitSandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    """F19: the configuration names the program that would fetch it. Most git before 2.45 ignore our variable."""
    scrubbed = git_program.environment

    def older(root: str) -> dict[str, str]:
        return {name: value for name, value in scrubbed(root).items() if name != "GIT_NO_LAZY_FETCH"}

    monkeypatch.setattr(git_program, "environment", older)
    sandbox.commit_with({"a": "1"})
    blob, trace = sandbox.git("rev-parse", "HEAD:a"), sandbox.root / "trace"
    program = sandbox.write("fetch.sh", f"#!/bin/sh\ntouch {trace}\nexit 1\n", mode=0o755)
    for name, value in (
        ("core.repositoryFormatVersion", "1"),
        ("core.sshCommand", str(program)),
        ("extensions.partialClone", "origin"),
        ("remote.origin.promisor", "true"),
        ("remote.origin.url", "ssh://host.invalid/x"),
    ):
        sandbox.git("config", name, value)
    sandbox.object_file(blob).unlink()
    assert git_program.read(str(sandbox.root), ["cat-file", "blob", blob]).status != 0
    assert not trace.exists()
    sandbox.try_git("cat-file", "blob", blob)
    assert trace.exists(), "it cannot go off, so it proves nothing"
