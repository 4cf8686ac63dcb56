"""One comparison of two repository states; what follows from it is for its callers (R-GIT-6)."""

from __future__ import annotations

from typing import Any

import pytest

from idumb.app.ports.repository import Head, RepositoryState
from idumb.app.worktree import drift
from idumb.app.worktree.drift import MovedRef

OLD, NEW = "a" * 40, "b" * 40


def state(branch: str | None = "main", commit: str = OLD, **more: Any) -> RepositoryState:
    return RepositoryState(Head(commit, branch), more.pop("guarded", {}), **more)


def compared(before: RepositoryState, after: RepositoryState, *, forward: bool = False) -> drift.Drift:
    return drift.compare(before, after, lambda *_: forward, branch="main")


def test_the_same_state_has_no_drift() -> None:
    one = state(guarded={"config": "1"}, refs={"refs/heads/x": OLD}, kept={"refs/idumb/1": OLD})
    assert compared(one, one) == drift.Drift((), (), (), None)


def test_files_that_decide_what_git_runs_are_compared_by_name_and_digest() -> None:
    after = state(guarded={"config": "2", "hooks/x": "1"})
    assert compared(state(guarded={"config": "1", "info/attributes": "1"}), after).guarded == (
        "config",
        "hooks/x",
        "info/attributes",
    )


def test_the_current_branch_is_compared_as_part_of_head() -> None:
    before, after = state(refs={"refs/heads/main": OLD, "refs/tags/v": OLD}), state(refs={"refs/heads/main": NEW})
    assert compared(before, after).refs == (MovedRef("refs/tags/v", OLD, None),)


@pytest.mark.parametrize(
    ("name", "old", "new", "forward", "may_lose"),
    [
        ("refs/heads/x", OLD, NEW, True, False),
        ("refs/heads/x", OLD, NEW, False, True),
        ("refs/heads/x", OLD, None, False, True),
        ("refs/heads/x", None, NEW, False, False),
        ("refs/replace/x", None, NEW, False, True),
        ("refs/remotes/o/x", OLD, NEW, False, False),
        ("refs/tags/x", OLD, NEW, True, True),
        ("refs/heads/x", "refs/heads/y", NEW, True, True),
    ],
)
def test_only_possible_losses_are_loud(
    name: str, old: str | None, new: str | None, *, forward: bool, may_lose: bool
) -> None:
    kept = {"refs/heads/kept": OLD}
    before, after = ({**kept, **({name: value} if value else {})} for value in (old, new))
    (ref,) = compared(state(refs=before), state(refs=after), forward=forward).refs
    assert ref.may_lose is may_lose


def test_refs_are_not_compared_with_a_state_without_refs() -> None:
    assert compared(state(), state(refs={"refs/heads/x": NEW})).refs == ()


@pytest.mark.parametrize(
    ("before", "after", "head"),
    [
        (("main", OLD), ("main", NEW), None),
        (("main", OLD), ("other", OLD), MovedRef("HEAD", "refs/heads/main", "refs/heads/other")),
        ((None, OLD), (None, NEW), MovedRef("HEAD", OLD, NEW)),
    ],
)
def test_head_drifts_to_another_branch_or_detached_commit(
    before: tuple[str | None, str], after: tuple[str | None, str], head: MovedRef | None
) -> None:
    assert compared(state(*before), state(*after)).head == head


def test_refs_of_idumb_that_moved_or_disappeared_are_named() -> None:
    before = state(kept={"refs/idumb/1": OLD, "refs/idumb/2": OLD, "refs/idumb/3": OLD})
    assert compared(before, state(kept={"refs/idumb/1": OLD, "refs/idumb/2": NEW})).own_refs == (
        "refs/idumb/2",
        "refs/idumb/3",
    )
