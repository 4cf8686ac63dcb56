"""Faults that are put into idumb on purpose, only in a process of a case."""

from __future__ import annotations

from typing import Any

from idumb.git import discover, git_dir, git_program, refs, scanner


def put(fault: str) -> None:
    if fault == "add all":
        _advance = refs.advance

        def careless(repository: Any, *arguments: Any, **options: Any) -> Any:
            git_program.write(repository.worktree.root, ["add", "--all"])
            return _advance(repository, *arguments, **options)

        refs.advance = careless
    elif fault == "times only":
        _trust_times()
    else:
        assert not fault, fault


def _trust_times() -> None:
    """The scanner believes size and time of modification alone."""
    files = git_dir.raw_files

    def trusting(path: str, user: discover.Worktree) -> dict[str, bytes | None]:
        own = files(path, user)
        return {**own, "config": (own["config"] or b"") + b"[core]\n\ttrustctime = false\n"}

    git_dir.raw_files = trusting
    scanner.Scanner._drop_young = lambda *_: None  # type: ignore[method-assign]
