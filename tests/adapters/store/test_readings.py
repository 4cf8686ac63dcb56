"""A kept reading is used only for the very source that it was read from."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from idumb import __version__
from idumb.store import readings, status_view
from idumb.store.readings import Readings


class Reader:
    """Reads `value`, and counts how often."""

    def __init__(self, value: object) -> None:
        self.value = value
        self.count = 0

    def __call__(self) -> object:
        self.count += 1
        return self.value


def fits(value: object) -> bool:
    return value != "of another shape"


@pytest.fixture
def kept(tmp_path: Path) -> Readings:
    return Readings(str(tmp_path / "state"), lambda text: "secret" not in text)


def test_the_same_source_is_read_once(kept: Readings) -> None:
    first, second = Reader([["a", {"b": "ü\udcff"}]]), Reader("other")
    assert [kept.get("one", lambda: "x", first, fits) for _ in range(3)] == [first.value] * 3
    assert kept.get("two", lambda: "x", second, fits) == "other"
    assert kept.get("one", lambda: "x", first, fits) == first.value
    assert (first.count, second.count) == (1, 1)


def test_another_source_is_read_again(kept: Readings) -> None:
    assert kept.get("one", lambda: "x", Reader(1), fits) == 1
    assert kept.get("one", lambda: "y", Reader(2), fits) == 2
    assert kept.get("one", lambda: "x", Reader(3), fits) == 3


def test_an_unknown_source_is_never_kept(kept: Readings, tmp_path: Path) -> None:
    assert [kept.get("one", lambda: None, Reader(n), fits) for n in (1, 2)] == [1, 2]
    assert not (tmp_path / "state").exists()


def test_what_was_read_while_its_source_changed_is_not_kept(kept: Readings) -> None:
    sources = iter(["x", "y"])
    assert kept.get("one", lambda: next(sources), Reader(1), fits) == 1
    assert kept.get("one", lambda: "x", Reader(2), fits) == 2
    assert kept.get("one", lambda: "y", Reader(3), fits) == 3


def test_what_failed_is_not_kept(kept: Readings) -> None:
    def fail() -> None:
        raise LookupError

    with pytest.raises(LookupError):
        kept.get("one", lambda: "x", fail, fits)
    assert kept.get("one", lambda: "x", Reader(1), fits) == 1


def test_what_may_not_be_written_is_read_each_time(kept: Readings, tmp_path: Path) -> None:
    assert [kept.get("one", lambda: "x", Reader(f"secret {n}"), fits) for n in (1, 2)] == ["secret 1", "secret 2"]
    assert not (tmp_path / "state").exists()


def test_what_became_a_secret_since_is_removed(tmp_path: Path) -> None:
    secrets = list[str]()
    kept = Readings(str(tmp_path), lambda text: not any(map(text.__contains__, secrets)))
    kept.get("one", lambda: "x", Reader("a token"), fits)
    secrets.append("token")
    kept.get("two", lambda: "x", Reader("other"), fits)
    assert not (tmp_path / readings.NAME).exists()


def flipped(file: Path) -> None:
    data = file.read_bytes()
    file.write_bytes(data[:-4] + bytes([data[-4] ^ 4]) + data[-3:])


def sealed(kept: object) -> bytes:
    text = json.dumps({"version": [__version__, 1], "kept": kept})
    return status_view.sealed(text.encode("ascii"))


DAMAGE: dict[str, Callable[[Path], object]] = {
    "missing": lambda file: file.unlink(),
    "empty": lambda file: file.write_bytes(b""),
    "cut": lambda file: file.write_bytes(file.read_bytes()[:-3]),
    "a flipped bit": flipped,
    "another file": lambda file: file.write_text("[]"),
    "no rows": lambda file: file.write_bytes(sealed(5)),
    "another row": lambda file: file.write_bytes(sealed({"one": 5})),
    "another value": lambda file: file.write_bytes(sealed({"one": ["x", "of another shape"]})),
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_a_damaged_file_is_read_again(kept: Readings, tmp_path: Path, damage: str) -> None:
    kept.get("one", lambda: "x", Reader(1), fits)
    DAMAGE[damage](tmp_path / "state" / readings.NAME)
    assert kept.get("one", lambda: "x", Reader(2), fits) == 2
    assert kept.get("one", lambda: "x", Reader(3), fits) == 2


def test_another_version_reads_again(kept: Readings, monkeypatch: pytest.MonkeyPatch) -> None:
    kept.get("one", lambda: "x", Reader(1), fits)
    monkeypatch.setattr(readings, "__version__", "another")
    assert kept.get("one", lambda: "x", Reader(2), fits) == 2
