"""What checks promise, asked of a shell and of the checks in memory."""

from __future__ import annotations

from pathlib import Path
from typing import Protocol

import pytest

from idumb.domain.plans.plan import Condition
from idumb.domain.proof.evidence import Evidence
from idumb.gates.checks import ShellChecks
from tests.support.cases import every
from tests.support.memory_checks import MemoryChecks
from tests.support.memory_repository import MemoryRepository
from tests.support.shell_checks import shell_checks


class Place(Protocol):
    checks: ShellChecks | MemoryChecks
    tree: str

    def write(self, path: str, data: bytes) -> None: ...
    def read(self, path: str) -> bytes: ...


class MemoryPlace:
    def __init__(self, _: Path) -> None:
        self.repository = MemoryRepository()
        self.checks = MemoryChecks(self.repository)
        self.tree = self.repository.store_tree({})

    def write(self, path: str, data: bytes) -> None:
        self.repository.files[path] = data

    def read(self, path: str) -> bytes:
        return self.repository.files[path]


class ShellPlace:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.checks = shell_checks(folder, ["PATH"])

    def write(self, path: str, data: bytes) -> None:
        (self.folder / path).write_bytes(data)

    def read(self, path: str) -> bytes:
        return (self.folder / path).read_bytes()


@pytest.fixture(params=[MemoryPlace, ShellPlace], ids=["memory", "shell"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    checked_place: Place = request.param(tmp_path)
    return checked_place


def check(place: Place, command: str) -> Evidence:
    return place.checks.command("AC-1", "it works", command, tree=None)


@every(
    "command, result, code",
    [
        ("true", "passed", 0),
        ("false", "failed", 1),
        ("test -f a", "passed", 0),
        ("test -f b", "failed", 1),
        ("grep -q one a", "passed", 0),
        ("grep -q two a", "failed", 1),
        ("grep -q one b", "failed", 2),
        ("no-such-program-anywhere", "errored", 127),
    ],
)
def test_the_exit_code_of_a_command_decides(place: Place, command: str, result: str, code: int) -> None:
    place.write("a", b"one\n")
    judged = check(place, command)
    assert (judged.result, judged.exit_code) == (result, code)


def test_evidence_names_what_was_asked(place: Place) -> None:
    judged = check(place, "true")
    assert (judged.subject, judged.text, judged.command, judged.tree) == ("AC-1", "it works", "true", None)


def test_a_check_without_a_tree_works_in_the_files_themselves(place: Place) -> None:
    place.write("a", b"one\n")
    assert check(place, "touch a").passed
    assert place.read("a") == b"one\n"
    assert check(place, "touch made").passed
    assert check(place, "truncate -s 0 a").passed
    assert (place.read("made"), place.read("a")) == (b"", b"")


@every("kind", ["file-exists", "file-absent"])
@every("path", ["a", "b"])
def test_a_condition_is_judged_by_the_files(place: Place, kind: str, path: str) -> None:
    place.write("a", b"")
    judged = place.checks.condition("precondition 1", Condition(kind, path), tree=None)
    assert judged.passed is ((path == "a") is (kind == "file-exists"))
    assert (judged.subject, judged.text) == ("precondition 1", f"{kind.replace('-', ' ')} {path}")


def test_without_processes_there_are_none_to_end(place: Place) -> None:
    assert place.checks.end_processes() == ()
