"""What `checkout.prepare` made stays while nothing that it depends on changes."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from idumb.domain import project_files
from idumb.git.checkouts import untracked
from idumb.git.checkouts.untracked import Prepared
from idumb.system import atomic_write
from tests.support.cases import every


class Checkout:
    """A checkout without a tree: everything in it is untracked. `runs` counts the installations."""

    def __init__(self, above: Path) -> None:
        self.root, self.state = above / "checkout", above / "state"
        self.root.mkdir()
        self.runs = 0
        self.prepared = Prepared(str(self.state))

    def ensure(self, key: str = "k", tree: str = "t") -> tuple[str, ...]:
        return self.prepared.ensure(str(self.root), key, self.untracked, self.install, tree)

    def untracked(self) -> set[str]:
        return {f"{path.name}/" if path.is_dir() else path.name for path in self.root.iterdir()}

    def install(self) -> None:
        self.runs += 1
        for name in ("lib", "other"):
            (self.root / "vendor" / name).mkdir(parents=True)
            (self.root / "vendor" / name / "x").write_text(f"{self.runs}\n")
        (self.root / "stamp").write_text("")

    def content(self) -> dict[str, str]:
        return {str(path.relative_to(self.root)): path.read_text() for path in self.root.rglob("*") if path.is_file()}


@pytest.fixture
def checkout(tmp_path: Path) -> Checkout:
    return Checkout(tmp_path)


def test_the_same_key_runs_nothing_and_another_one_makes_it_again(checkout: Checkout) -> None:
    """What a program added is removed."""
    (checkout.root / "cache").write_text("was there before\n")
    assert checkout.ensure() == ("stamp", "vendor")
    before = checkout.content()
    (checkout.root / "vendor/.cache/deep").mkdir(parents=True)
    (checkout.root / "vendor/lib/added").write_text("bad\n")
    checkout.prepared = Prepared(str(checkout.state))
    assert checkout.ensure(tree="t2") == ("stamp", "vendor")
    assert (checkout.runs, checkout.content()) == (1, before)
    assert not (checkout.root / "vendor/.cache").exists()
    (checkout.root / "vendor/added").write_text("")
    assert checkout.ensure("other") == ("stamp", "vendor")
    made = {"vendor/lib/x": "2\n", "vendor/other/x": "2\n", "stamp": ""}
    assert checkout.content() == {**made, "cache": "was there before\n"}


def _edit(root: Path) -> None:
    place = root / "vendor/lib/x"
    times = place.stat()
    place.write_text("9\n")
    os.utime(place, ns=(times.st_atime_ns, times.st_mtime_ns))


def _remove(root: Path) -> None:
    (root / "vendor/lib/x").unlink()


def _replace(root: Path) -> None:
    shutil.rmtree(root / "vendor/lib")
    (root / "vendor/lib").symlink_to("other")


@every("change", [_edit, _remove, _replace])
def test_what_a_program_changed_is_made_again(tmp_path: Path, change: object) -> None:
    checkout = Checkout(tmp_path)
    checkout.ensure()
    change(checkout.root)  # type: ignore[operator]
    checkout.ensure()
    assert checkout.content() == {"vendor/lib/x": "2\n", "vendor/other/x": "2\n", "stamp": ""}
    checkout.ensure()
    assert checkout.runs == 2


def test_a_link_in_place_of_a_folder_is_not_followed(tmp_path: Path) -> None:
    checkout, users = Checkout(tmp_path), tmp_path / "users"
    checkout.ensure()
    shutil.copytree(checkout.root / "vendor", users)
    shutil.rmtree(checkout.root / "vendor")
    (checkout.root / "vendor").symlink_to(users)
    checkout.ensure()
    assert (users / "lib/x").read_text() == "1\n"
    assert (checkout.root / "vendor/lib/x").read_text() == "2\n"


def test_a_record_that_a_program_wrote_is_not_believed(checkout: Checkout) -> None:
    """A builder may know how idumb records it."""
    paths = checkout.ensure()
    (checkout.root / "vendor/lib/x").write_text("bad\n")
    record = str(checkout.state / "prepared.json")
    forged = untracked.Manifest(paths, untracked.present(str(checkout.root), paths), key=untracked.load(record).key)
    forged.save(record)
    checkout.ensure()
    assert (checkout.root / "vendor/lib/x").read_text() == "2\n"


def test_the_record_waits_until_a_later_change_must_get_another_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The clock of a file system stands still for some milliseconds."""
    place, clock = str(tmp_path / "record"), tmp_path / "record.time"
    clock.touch()
    write, stands = atomic_write.write, iter((True, True))

    def written(path: str, *data: Any, **how: Any) -> None:
        if path == place or not next(stands, False):
            write(path, *data, **how)

    monkeypatch.setattr(atomic_write, "write", written)
    untracked.Manifest(("a",), {"a": untracked.stamp(clock.stat())}).save(place)
    assert (next(stands, None), untracked.load(place).paths) == (None, ("a",))


@every("damage", ["", "{}", "[1, 2, 3, 4, 5]", "[[], [], [], [], 0]", "\xff"])
def test_a_damaged_record_is_as_none(tmp_path: Path, damage: str) -> None:
    checkout = Checkout(tmp_path)
    checkout.state.mkdir()
    (checkout.state / "prepared.json").write_text(damage, encoding="latin-1")
    checkout.prepared = Prepared(str(checkout.state))
    assert checkout.ensure() == ("stamp", "vendor")


@every(
    "source, other",
    [
        ({"url": "file://{root}", "dir_info": {}}, "made again"),
        ({"url": "file://{root}/packages/own", "dir_info": {}}, "made again"),
        ({"url": "file://{root}", "dir_info": {"editable": True}}, "kept"),
        ({"url": "file:///elsewhere", "dir_info": {}}, "kept"),
        ({"url": "https://host/own.whl", "archive_info": {}}, "kept"),
        ([], "kept"),
    ],
)
def test_an_installed_copy_of_the_project_belongs_to_its_tree(tmp_path: Path, source: object, other: str) -> None:
    """A check would judge the sources of an earlier tree."""
    checkout = Checkout(tmp_path)
    text = json.dumps(source).replace("{root}", str(checkout.root))

    def install() -> None:
        info = checkout.root / ".venv/lib/python3.11/site-packages/own-1.dist-info"
        info.mkdir(parents=True)
        (info / "direct_url.json").write_text(text)
        checkout.runs += 1

    checkout.install = install  # type: ignore[method-assign]
    checkout.ensure(tree="t1")
    checkout.ensure(tree="t1")
    assert checkout.runs == 1
    checkout.ensure(tree="t2")
    assert checkout.runs == (2 if other == "made again" else 1)


def test_lock_files_of_every_folder_count() -> None:
    paths = ["a.txt", "web/package-lock.json", "requirements-dev.txt", "uv.lock", "my-uv.lock", "go.sum", "x/pom.xml"]
    assert project_files.install_files(paths) == [
        "go.sum",
        "requirements-dev.txt",
        "uv.lock",
        "web/package-lock.json",
        "x/pom.xml",
    ]
