"""What can decide the program of a check, outside its tree, is named if it changed since the run began (R-RUN-3)."""

from __future__ import annotations

from pathlib import Path

from idumb.gates import changed_programs
from tests.support.cases import every


def program(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("#!/bin/sh\n")
    path.chmod(0o755)
    return path


def names(
    command: str, *search_path: Path, above: Path | None = None, since: int = 1, files: tuple[str, ...] = ()
) -> list[str]:
    folders = [str(folder) for folder in search_path]
    return [*changed_programs.names(command, folders, files, [str(above)] if above else [], since)]


def now(path: Path) -> int:
    return path.stat().st_ctime_ns


def test_a_program_on_path_or_named_by_its_path_that_changed_is_named(tmp_path: Path) -> None:
    """What the command starts may start any program on PATH, as `make` starts `cc`."""
    compiler, own = program(tmp_path / "bin/cc"), program(tmp_path / "own/run")
    (tmp_path / "bin/notes").touch()
    assert names(f"{own} x && make", tmp_path / "bin") == [str(own), str(compiler)]
    assert names(f"{own} x && make", tmp_path / "bin", since=max(now(compiler), now(own))) == []


def test_a_link_is_as_new_as_what_it_leads_to(tmp_path: Path) -> None:
    target, link = program(tmp_path / "elsewhere/tool"), tmp_path / "bin/tool"
    link.parent.mkdir()
    link.symlink_to(target)
    made = link.lstat().st_ctime_ns
    assert names("tool", link.parent, since=made) == []
    while now(target) <= made:  # the file system's clock ticks slowly
        target.chmod(0o755)
    assert names("tool", link.parent, since=made) == [str(link)]


def test_a_folder_of_path_that_leads_to_another_place_now_is_named(tmp_path: Path) -> None:
    program(tmp_path / "v1/tool")
    current = tmp_path / "current"
    current.symlink_to(tmp_path / "v1")
    assert names("tool", current, since=current.lstat().st_ctime_ns - 1)[0] == str(current)


@every("place", ["package.json", "node_modules", ".cargo/config.toml", "conftest.py"])
def test_what_tools_find_above_the_tree_is_named(tmp_path: Path, place: str) -> None:
    assert names("npm test", above=tmp_path) == []
    (tmp_path / place).parent.mkdir(exist_ok=True)
    (tmp_path / place).touch()
    assert names("npm test", above=tmp_path) == [str(tmp_path / place)]


def test_packages_that_were_installed_for_python_are_named(tmp_path: Path) -> None:
    interpreter, packages = program(tmp_path / "bin/python3"), tmp_path / "lib/python3.11/site-packages"
    packages.mkdir(parents=True)
    since = max(now(packages), now(interpreter))
    assert names("pytest", tmp_path / "bin", since=since) == []
    (packages / "installed").mkdir()
    assert names("pytest", tmp_path / "bin", since=now(packages) - 1) == [str(packages)]


def test_packages_of_the_user_are_named(tmp_path: Path) -> None:
    packages = tmp_path / "lib/python3.11/site-packages"
    packages.mkdir(parents=True)
    changed = changed_programs.names("pytest", [], [], [], now(packages) - 1, str(tmp_path))
    assert changed == (str(packages),)
    assert changed_programs.names("pytest", [], [], [], now(packages), str(tmp_path)) == ()


def test_files_of_toolchains_and_a_folder_that_is_missing(tmp_path: Path) -> None:
    (tmp_path / "config.toml").touch()
    assert names("x", tmp_path / "none", files=(f"{tmp_path}/config.toml", f"{tmp_path}/gone")) == [
        f"{tmp_path}/config.toml"
    ]


def test_a_program_that_only_an_administrator_can_replace_is_not_looked_at() -> None:
    assert names("true", Path("/usr/bin"), Path("/bin")) == []


def test_at_most_twenty_are_named(tmp_path: Path) -> None:
    for number in range(30):
        program(tmp_path / f"bin/p{number}")
    assert len(names("x", tmp_path / "bin")) == 20
