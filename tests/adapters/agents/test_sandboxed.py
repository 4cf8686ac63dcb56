"""Which places the sandbox of an agent's program opens."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from idumb.agents import sandboxed
from idumb.agents.adapter import Equipment
from idumb.domain.agent import BUILDER, VALIDATOR, AgentRequest
from idumb.domain.errors import AdapterError
from idumb.domain.runs.sandbox import Fence, Support
from idumb.domain.settings import SANDBOX_AUTO, SANDBOX_BWRAP, SANDBOX_LANDLOCK, SandboxSettings, Settings


class Recorder:
    """A machine with this support; it keeps the fence that it should build."""

    def __init__(self, support: Support) -> None:
        self._support = support
        self.level = ""
        self.fence = Fence(())

    def support(self) -> Support:
        return self._support

    def launcher(self, level: str, fence: Fence) -> tuple[str, ...]:
        self.level, self.fence = level, fence
        return ("launcher",)


BOTH = Support(7, "/usr/bin/bwrap")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "repo"
    for folder in (".git", ".idumb", "src", "docs", "scratch"):
        (root / folder).mkdir(parents=True)
    for name in ("README.md", "AGENTS.md", "other.md", "x.txt"):
        (root / name).write_text("")
    return root


def fence_of(
    root: Path, *allowed: str, role: str = BUILDER, commits: bool = False, write: tuple[str, ...] = (),
    support: Support = BOTH, sandboxed_: bool = False, level: str = SANDBOX_AUTO,
) -> tuple[str, list[str], list[str], list[str]]:  # fmt: skip
    """Return the level, and the names of what is writable, guarded and read-only."""
    machine = Recorder(support)
    equipment = Equipment(
        Settings(), str(root), lambda *_: (False, ""), str, sandboxes=lambda: machine, guarded=(str(root / ".git"),)
    )
    request = AgentRequest(role, None, "", str(root), allowed, commits=commits, sandboxed=sandboxed_, about="it")
    scratch = str(root.parent / "scratch")
    os.makedirs(scratch, exist_ok=True)
    with sandboxed.opened(request, equipment, SandboxSettings(level, write), scratch, ()) as place:
        assert place.variables.get("TMPDIR", f"{scratch}/tmp") == f"{scratch}/tmp"
    kept = (machine.fence.writable, machine.fence.guarded, machine.fence.read_only)
    names = [sorted(os.path.relpath(path, root) for path in paths) for paths in kept]
    return place.level, names[0], names[1], names[2]


def test_the_folders_of_declared_files_are_writable(root: Path) -> None:
    level, writable, guarded, read_only = fence_of(root, "src/a.py", "docs/**")
    assert level == SANDBOX_BWRAP
    assert (writable, guarded, read_only) == (["../scratch", "docs", "src"], [".git", ".idumb"], ["."])


def test_a_program_makes_a_missing_folder_itself(root: Path) -> None:
    level, writable, _, read_only = fence_of(root, "new/deep/a.py")
    assert (level, writable) == (SANDBOX_BWRAP, [".", "../scratch"])
    assert "src" in read_only
    assert fence_of(root, "src/new/a.py")[:2] == (SANDBOX_BWRAP, ["../scratch", "src"])


@pytest.mark.parametrize("required", [False, True])
@pytest.mark.parametrize("level", [SANDBOX_AUTO, SANDBOX_LANDLOCK])
def test_without_bubblewrap_a_missing_folder_beside_git_exists_only_if_it_must(
    level: str, root: Path, *, required: bool
) -> None:
    kernel = Support(7, "", "", "no bwrap")
    in_force, writable, *_ = fence_of(root, "new/deep/a.py", support=kernel, sandboxed_=required, level=level)
    if required or level == SANDBOX_LANDLOCK:
        assert (in_force, writable) == ("landlock", ["../scratch", "new/deep"])
    else:
        assert in_force == "detection only: no bwrap; Landlock cannot allow new files beside .git and protect .git"
    assert not (root / "new").exists()


def test_a_file_at_the_top_opens_the_top_without_the_rest(root: Path) -> None:
    level, writable, guarded, read_only = fence_of(root, "README.md", "src/a.py")
    assert level == SANDBOX_BWRAP
    assert (writable, guarded) == ([".", "../scratch", "src"], [".git", ".idumb"])
    assert read_only == ["AGENTS.md", "docs", "other.md", "scratch", "x.txt"]
    assert fence_of(root, "*.md")[3] == ["AGENTS.md", "docs", "scratch", "src", "x.txt"]


@pytest.mark.parametrize("folder", ["out/**", "out/x/**", "src/out/**"])
def test_a_link_in_the_scope_opens_nothing(folder: str, root: Path, tmp_path: Path) -> None:
    (tmp_path / "outside/x").mkdir(parents=True)
    for name in ("out", "src/out"):
        (root / name).symlink_to(tmp_path / "outside")
    assert fence_of(root, folder)[1] == ["../scratch"]


def test_a_role_that_judges_writes_only_in_scratch(root: Path) -> None:
    assert fence_of(root, "src/a.py", role=VALIDATOR, write=("docs",))[1] == ["../scratch"]


def test_a_builder_that_commits_writes_in_the_git_folder_of_its_clone(root: Path, tmp_path: Path) -> None:
    user, clone = root, tmp_path / "clone"
    (clone / ".git").mkdir(parents=True)
    (clone / "src").mkdir()
    machine = Recorder(BOTH)
    equipment = Equipment(
        Settings(), str(user), lambda *_: (False, ""), str, sandboxes=lambda: machine, guarded=(str(user / ".git"),)
    )
    scratch = str(tmp_path / "scratch")
    os.mkdir(scratch)
    for allowed in ("src/a", "a.md"):
        request = AgentRequest(BUILDER, None, "", str(clone), (allowed,), commits=True)
        with sandboxed.opened(request, equipment, SandboxSettings(), scratch, ()) as place:
            assert place.level == SANDBOX_BWRAP
        assert str(clone / ".git") in machine.fence.writable
        assert machine.fence.guarded == (str(user / ".git"),)


def test_configured_places_are_writable(root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "cache").mkdir()
    monkeypatch.setenv("HOME", str(tmp_path))
    assert fence_of(root, "src/a", write=("~/cache", "docs", "/missing/x"))[1] == [
        "../cache", "../scratch", "docs", "src",
    ]  # fmt: skip
    level, *_ = fence_of(root, "src/a", write=("~",), support=Support(7, "", "", "no bwrap"))
    assert level == "detection only: no bwrap; Landlock cannot allow new files beside .git and protect .git"


def test_a_required_sandbox_that_is_not_there_starts_nothing(root: Path) -> None:
    with pytest.raises(AdapterError, match=r"No sandbox for it: no bwrap; no landlock\."):
        fence_of(root, "src/a", support=Support(0, "", "no landlock", "no bwrap"), sandboxed_=True)


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
    written = fence_of(root, "src/a", write=(f"{tmp_path}/cache", place.format(home=tmp_path)))[1]
    assert written == ["../cache", "../scratch", "src"]


def test_a_configured_place_may_be_a_link_of_the_user(root: Path, tmp_path: Path) -> None:
    (tmp_path / "large/cache").mkdir(parents=True)
    (tmp_path / "cache").symlink_to("large/cache")
    assert "../large/cache" in fence_of(root, "src/a", write=(f"{tmp_path}/cache",))[1]


@pytest.mark.parametrize("place", [".git", ".git/hooks", ".idumb", "src/../.git/hooks"])
def test_no_configuration_opens_the_folders_of_git_and_idumb(place: str, root: Path) -> None:
    (root / ".git/hooks").mkdir()
    _, writable, guarded, _ = fence_of(root, "src/a", write=(place,))
    assert (writable, guarded) == (["../scratch", "src"], [".git", ".idumb"])


def test_no_sandbox_can_protect_a_git_folder_that_is_a_link_beside_declared_files(root: Path, tmp_path: Path) -> None:
    """A bind mount cannot lie on a link, so a program could replace it and with it the configuration of git."""
    (root / ".git").rename(tmp_path / "git")
    (root / ".git").symlink_to(tmp_path / "git")
    level, *_ = fence_of(root, "README.md")
    assert level == f"detection only: no sandbox can protect {root}/.git, which is a link"
    assert fence_of(root, "src/a")[0] == SANDBOX_BWRAP
