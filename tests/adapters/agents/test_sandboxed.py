"""Which places the sandbox of an agent's program opens."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from idumb.agents import adapter
from idumb.domain.agent import BUILDER, VALIDATOR, AgentRequest
from idumb.domain.errors import AdapterError
from idumb.domain.permissions import SANDBOX_AUTO, SANDBOX_BWRAP, Fence, SandboxSettings, Support
from idumb.domain.settings import Settings
from tests.support.equipment import equipped


class Recorder:
    """A machine with this support; it keeps the fence that it should build."""

    def __init__(self, support: Support) -> None:
        self._support = support
        self.fence = Fence(())

    def support(self) -> Support:
        return self._support

    def launcher(self, level: str, fence: Fence) -> tuple[str, ...]:
        self.fence = fence
        return ("launcher",)


BWRAP = Support("/usr/bin/bwrap")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A checkout, beside the repository of the user."""
    (tmp_path / "user/.git").mkdir(parents=True)
    root = tmp_path / "repo"
    for folder in (".git", ".idumb", "src", "docs", "scratch"):
        (root / folder).mkdir(parents=True)
    for name in ("README.md", "AGENTS.md", "other.md", "x.txt"):
        (root / name).write_text("")
    return root


def fence_of(
    root: Path, *allowed: str, role: str = BUILDER, write: tuple[str, ...] = (),
    support: Support = BWRAP, level: str = SANDBOX_AUTO,
) -> tuple[list[str], list[str]]:  # fmt: skip
    """Return the names of what is writable, and of what is guarded."""
    machine, user = Recorder(support), root.parent / "user"
    settings = Settings(sandbox=SandboxSettings(level, write))
    equipment = equipped(user, settings=settings, sandboxes=lambda: machine, guarded=(str(user / ".git"),))
    request = AgentRequest(role, None, "", str(root), allowed, about="it")
    scratch = str(root.parent / "scratch")
    os.makedirs(scratch, exist_ok=True)
    place = adapter.sandboxed(request, equipment, scratch, ())
    assert place.variables.get("TMPDIR", f"{scratch}/tmp") == f"{scratch}/tmp"
    writable, guarded = machine.fence.writable, machine.fence.guarded
    return sorted(os.path.relpath(path, root) for path in writable), [os.path.relpath(path, root) for path in guarded]


def test_a_role_that_judges_writes_only_in_scratch(root: Path) -> None:
    assert fence_of(root, "src/a.py", role=VALIDATOR, write=("docs",))[0] == ["../scratch"]


def test_configured_places_are_writable(root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "cache").mkdir()
    monkeypatch.setenv("HOME", str(tmp_path))
    written = fence_of(root, "src/a", write=("~/cache", "docs", "/missing/x"))[0]
    assert written == [".", "../cache", "../scratch", ".git"]


def test_a_required_sandbox_that_is_not_there_starts_nothing(root: Path) -> None:
    with pytest.raises(AdapterError, match=r"No sandbox for it: no bwrap\."):
        fence_of(root, "src/a", support=Support("", "no bwrap"), level=SANDBOX_BWRAP)


@pytest.mark.parametrize("place", ["target", "target/deep", "{home}/cache/pip", "{home}/shortcut/target"])
def test_a_configured_place_behind_a_link_that_a_builder_could_have_made_is_not_writable(
    place: str, root: Path, tmp_path: Path
) -> None:
    """Otherwise one attempt leaves a link to the user's files, and the next one may write there."""
    (tmp_path / "cache").mkdir()
    (tmp_path / "keys/deep").mkdir(parents=True)
    (root / "target").symlink_to(tmp_path / "keys")
    (tmp_path / "cache/pip").symlink_to(tmp_path / "keys")
    (tmp_path / "shortcut").symlink_to(root)
    written = fence_of(root, "src/a", write=(f"{tmp_path}/cache", place.format(home=tmp_path)))[0]
    assert written == [".", "../cache", "../scratch", ".git"]


def test_a_configured_place_may_be_a_link_of_the_user(root: Path, tmp_path: Path) -> None:
    (tmp_path / "large/cache").mkdir(parents=True)
    (tmp_path / "cache").symlink_to("large/cache")
    assert "../large/cache" in fence_of(root, "src/a", write=(f"{tmp_path}/cache",))[0]


@pytest.mark.parametrize("place", ["../user/.git", "../user/.git/hooks", "src/../../user/.git/hooks"])
def test_no_configuration_opens_the_user_s_git_folder(place: str, root: Path) -> None:
    (root.parent / "user/.git/hooks").mkdir()
    assert fence_of(root, "src/a", write=(place,)) == ([".", "../scratch", ".git"], ["../user/.git"])
