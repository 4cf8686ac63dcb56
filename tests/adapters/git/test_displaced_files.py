"""A save of another program at any moment of a restore stays at its path, or is kept and named. R-GIT-3."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from idumb.app.ports import Conflict
from idumb.git import path_state, write_back
from idumb.git.path_state import Spot
from idumb.git.trees import GitTrees
from tests.adapters.git.conftest import edited
from tests.support.gitrepo import GitSandbox

WHY = "was changed while it was restored"


@pytest.fixture(params=["by exchange", "without exchange", "on another file system"])
def both(
    request: pytest.FixtureRequest, sandbox: GitSandbox, trees: GitTrees, monkeypatch: pytest.MonkeyPatch
) -> tuple[str, str]:
    """The trees before and after an edit of `d/a`, a deletion of `d/gone` and a creation of `d/new`."""
    if request.param == "without exchange":
        monkeypatch.setattr(path_state, "_system", lambda: None)
    elif request.param == "on another file system":
        monkeypatch.setattr(write_back, "_is_on_one_file_system", lambda *_: False)
    before = dict.fromkeys(("d/a", "d/gone", "d/stays"), "1")
    return edited(sandbox, trees, before, {"d/a": "2", "d/new": "2", "d/gone": None})


def _before(patching: pytest.MonkeyPatch, name: str, *acts: Callable[[], object]) -> None:
    """Let somebody act just before each of the first calls that move a file to or from the working tree."""
    owner: Any = os if name == "rename" else path_state
    call, waiting = getattr(owner, name), list(acts)

    def late(*arguments: Any, **folders: Any) -> Any:
        spots = [one for one in arguments if isinstance(one, Spot)]
        inside = any(spot.folder is not None for spot in spots) or folders.get("src_dir_fd") is not None
        act = waiting.pop(0) if waiting and inside else None
        if act is not None:
            act()
        return call(*arguments, **folders)

    patching.setattr(owner, name, late)


def _save(place: Path, text: str) -> None:
    """Save as most editors do: write another file, and rename it."""
    other = place.with_name("saving")
    other.write_text(text, encoding="utf-8")
    other.rename(place)


def _texts(trees: GitTrees, sandbox: GitSandbox) -> tuple[list[str], list[str]]:
    """What the folder holds at the end of the operation, and what was kept elsewhere and named."""
    named = [Path(place).read_text(encoding="utf-8") for place in trees.release_displaced()]
    folder = sandbox.root / "d"
    return sorted(f"{p.name}={p.read_text(encoding='utf-8')}" for p in folder.iterdir() if p.name[0] != "."), named


def test_nothing_is_left_of_displaced_files_after_the_operation(
    sandbox: GitSandbox, trees: GitTrees, both: tuple[str, str]
) -> None:
    assert trees.restore(*both, ["d/a", "d/gone", "d/new"]) == ()
    assert any((sandbox.root / place).exists() for place in (".git/idumb/displaced/main", ".idumb/displaced"))
    assert _texts(trees, sandbox) == (["a=1", "gone=1", "stays=1"], [])
    assert sorted(os.listdir(sandbox.root / "d")) == ["a", "gone", "stays"]
    assert not (sandbox.git_dir / "idumb/displaced/main").exists()


RACES: dict[str, tuple[str, str, Callable[[Path], object]]] = {
    "a save by rename": ("exchange", "d/a", lambda place: _save(place, "mine")),
    "a save in place": ("exchange", "d/a", lambda place: place.write_text("mine")),
    "another mode": ("exchange", "d/a", lambda place: place.chmod(0o755)),
    "a new file": ("move_to_free", "d/gone", lambda place: place.write_text("mine")),
    "a save before a deletion": ("rename", "d/new", lambda place: place.write_text("mine")),
}
"""The call before which the user acts, the path, and what the user does with it."""


@pytest.mark.parametrize("race", RACES)
def test_a_save_just_before_the_exchange_is_put_back(
    sandbox: GitSandbox, trees: GitTrees, both: tuple[str, str], monkeypatch: pytest.MonkeyPatch, race: str
) -> None:
    call, path, act = RACES[race]
    place = sandbox.root / path
    with monkeypatch.context() as patching:
        _before(patching, call, lambda: act(place))
        assert trees.restore(*both, [path]) == (Conflict(path, WHY),)
    if race == "another mode":
        assert place.stat().st_mode & 0o777 == 0o755
    texts = {"a": "2", "new": "2", "stays": "1", place.name: "2" if race == "another mode" else "mine"}
    assert _texts(trees, sandbox) == (sorted(f"{name}={text}" for name, text in texts.items()), [])


def test_of_two_saves_around_the_exchange_the_newest_stays_and_the_other_is_named(
    sandbox: GitSandbox, trees: GitTrees, both: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    place = sandbox.root / "d/a"
    swaps = path_state._system() is not None
    with monkeypatch.context() as patching:
        second = "exchange" if swaps else "move_to_free"
        if swaps:
            _before(patching, "exchange", lambda: _save(place, "older"), lambda: _save(place, "newer"))
        else:
            _before(patching, "exchange", lambda: _save(place, "older"))
            _before(patching, second, lambda: _save(place, "newer"))
        (conflict,) = trees.restore(*both, ["d/a"])
    assert "another saved version is in" in conflict.why
    assert _texts(trees, sandbox) == (["a=newer", "new=2", "stays=1"], ["older"])


def test_of_two_saves_around_a_deletion_the_newest_stays_and_the_other_is_named(
    sandbox: GitSandbox, trees: GitTrees, both: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    place = sandbox.root / "d/new"
    with monkeypatch.context() as patching:
        _before(patching, "rename", lambda: place.write_text("older"))
        _before(patching, "move_to_free", lambda: place.write_text("newer"))
        (conflict,) = trees.restore(*both, ["d/new"])
    assert "another saved version is in" in conflict.why
    assert _texts(trees, sandbox) == (["a=2", "new=newer", "stays=1"], ["older"])


def test_what_a_program_writes_later_to_a_file_that_it_held_open_is_kept_and_named_again(
    sandbox: GitSandbox, trees: GitTrees, both: tuple[str, str]
) -> None:
    with (sandbox.root / "d/a").open("r+") as edit, (sandbox.root / "d/new").open("r+") as new:
        assert trees.restore(*both, ["d/a", "d/new"]) == ()
        edit.write("late edit")
        new.write("late new")
    for _ in range(2):
        texts, named = _texts(trees, sandbox)
        assert (texts, sorted(named)) == (["a=1", "stays=1"], ["late edit", "late new"])


def test_what_a_killed_restore_displaced_unseen_is_named(
    sandbox: GitSandbox, trees: GitTrees, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The next restore finishes it: the saved text is not at its path any more, and not lost."""
    base, after = edited(sandbox, trees, {"d/a": "1"}, {"d/a": "2"})
    exchange = path_state.exchange

    def killed(one: Spot, other: Spot) -> bool:
        sandbox.write("d/a", "mine")
        exchange(one, other)
        raise KeyboardInterrupt

    with monkeypatch.context() as patching:
        patching.setattr(path_state, "exchange", killed)
        with pytest.raises(KeyboardInterrupt):
            trees.restore(base, after, ["d/a"])
    assert trees.restore(base, after, ["d/a"]) == ()
    assert _texts(trees, sandbox) == (["a=1"], ["mine"])
