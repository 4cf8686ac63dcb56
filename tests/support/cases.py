"""All rows of a table in one test: cheaper than one test a row, and each row that fails is still named."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import pytest

Test = Callable[..., None]

_FAILURES = (Exception, pytest.fail.Exception)


def every(names: str, rows: Iterable[Any]) -> Callable[[Test], Test]:
    """Decorate a test like `pytest.mark.parametrize(names, rows)`, but run all rows in one test.

    Other fixtures are shared by the rows; only `tmp_path` is a folder of its own for each.
    """
    given = [name.strip() for name in names.split(",")]
    table = [tuple(row) if len(given) > 1 else (row,) for row in rows]
    assert table, "a table without rows proves nothing"

    def decorate(test: Test) -> Test:
        def all_rows(**fixtures: Any) -> None:
            failures = [failure for number, row in enumerate(table) if (failure := run(number, row, fixtures))]
            if failures:
                raise BaseExceptionGroup(f"{len(failures)} of {len(table)} cases fail", failures)

        def run(number: int, row: Sequence[Any], fixtures: dict[str, Any]) -> BaseException | None:
            if "tmp_path" in fixtures:
                fixtures = {**fixtures, "tmp_path": _new_folder(fixtures["tmp_path"], number)}
            try:
                test(**dict(zip(given, row, strict=True)), **fixtures)
            except _FAILURES as failure:
                failure.add_note(f"case {number}: {', '.join(map(_short, row))}")
                return failure
            return None

        signature = inspect.signature(test)
        rest = [value for name, value in signature.parameters.items() if name not in given]
        assert len(rest) + len(given) == len(signature.parameters), "the test does not take what the rows give"
        all_rows.__signature__ = signature.replace(parameters=rest)  # type: ignore[attr-defined]
        for name in ("__name__", "__qualname__", "__module__", "__doc__"):
            setattr(all_rows, name, getattr(test, name))
        all_rows.pytestmark = getattr(test, "pytestmark", [])  # type: ignore[attr-defined]
        return all_rows

    return decorate


def _new_folder(folder: Path, number: int) -> Path:
    place = folder / str(number)
    place.mkdir()
    return place


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 100 else f"{text[:80]}[...]"
