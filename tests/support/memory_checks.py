"""Checks over the files in memory. They know `true`, `false`, `test -f`, `grep -q`, `touch` and `truncate`."""

from __future__ import annotations

from collections.abc import Mapping

from idumb.domain.plans.plan import Condition
from idumb.domain.proof import evidence
from idumb.domain.proof.evidence import Evidence
from tests.support.memory_repository import MemoryRepository

NOT_FOUND = 127


class MemoryChecks:
    """As `ShellChecks`. `ran` has every command in order."""

    def __init__(self, repository: MemoryRepository) -> None:
        self._repository = repository
        self.ran: list[str] = []

    def renew(self) -> None:
        pass

    def lacked_by_hook(self, words: str) -> str:
        return words.partition("lacks ")[2]

    def given(self, _: Mapping[str, str]) -> MemoryChecks:
        return self

    def start_controls(self, commands: Mapping[str, str], *, tree: str) -> None:
        pass

    def end_controls(self, *, limit: float | None) -> Mapping[str, str]:
        return {}

    def command(self, subject: str, text: str, command: str, *, tree: str | None, timeout: float = 0) -> Evidence:
        self.ran.append(command)
        code = self._exit_code(command.split(), self._files(tree))
        failed = evidence.ERRORED if code == NOT_FOUND else evidence.FAILED
        return Evidence(subject, text, failed if code else evidence.PASSED, command, exit_code=code, tree=tree)

    def alone(self, subject: str, command: str, *, tree: str, timeout: float = 0) -> Evidence:
        return self.command(subject, command, command, tree=tree)

    def _files(self, tree: str | None) -> dict[str, bytes]:
        if tree is None:
            return self._repository.files
        return {path: self._repository.blobs[oid] for path, oid in self._repository.trees[tree].items()}

    def _exit_code(self, argv: list[str], files: dict[str, bytes]) -> int:
        match argv:
            case ["true"]:
                return 0
            case ["false"]:
                return 1
            case ["test", "-f", path]:
                return 0 if path in files else 1
            case ["grep", "-q", word, path]:
                return 2 if path not in files else 0 if word.encode() in files[path] else 1
            case ["touch", path]:
                files.setdefault(path, b"")
                return 0
            case ["truncate", "-s", "0", path]:
                files[path] = b""
                return 0
        return NOT_FOUND

    def condition(self, subject: str, condition: Condition, *, tree: str | None) -> Evidence:
        exists = condition.subject in self._files(tree)
        holds = {"file-exists": exists, "file-absent": not exists}[condition.kind]
        result = evidence.PASSED if holds else evidence.FAILED
        return Evidence(subject, f"{condition.kind.replace('-', ' ')} {condition.subject}", result, tree=tree)

    def end_processes(self) -> tuple[int, ...]:
        return ()
