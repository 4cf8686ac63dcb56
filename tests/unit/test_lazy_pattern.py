"""A pattern of `idumb.lazy_pattern` behaves like one of `re`, and is compiled only once it is used."""

from __future__ import annotations

import copy
import re
import subprocess
import sys

import pytest

from idumb import lazy_pattern
from tests.meta import source

EVERY_PATTERN = """
import gc, importlib, pkgutil
import idumb
from idumb.lazy_pattern import LazyPattern
for module in pkgutil.walk_packages(idumb.__path__, "idumb."):
    if not module.name.endswith("__main__"):
        importlib.import_module(module.name)
patterns = [found for found in gc.get_objects() if type(found) is LazyPattern]
for pattern in patterns:
    pattern.groups
print(len(patterns))
"""


@pytest.fixture
def compiled(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What `re.compile` was asked for."""
    asked: list[str] = []
    real = re.compile

    def compile_(pattern: str, flags: int = 0) -> re.Pattern[str]:
        asked.append(pattern)
        return real(pattern, flags)

    monkeypatch.setattr(re, "compile", compile_)
    return asked


def test_a_pattern_is_compiled_once_and_at_its_first_use(compiled: list[str]) -> None:
    pattern = lazy_pattern.compile(r"(\d+)")
    assert pattern.pattern == r"(\d+)"
    assert "(" in repr(pattern)
    assert compiled == []
    assert pattern.search("a 12") is not None
    assert pattern.match("12") is not None
    assert pattern.sub("n", "a 12") == "a n"
    assert compiled == [r"(\d+)"]


def test_a_pattern_has_every_public_attribute_of_a_compiled_one_with_the_same_value() -> None:
    real = re.compile(r"(?P<word>[a-z]+)-(\d+)", re.IGNORECASE | re.MULTILINE)
    for name in (name for name in dir(real) if not name.startswith("_")):
        late = lazy_pattern.compile(real.pattern, re.IGNORECASE | re.MULTILINE)
        value = getattr(late, name)
        if not callable(value):
            assert value == getattr(real, name), name
    late = lazy_pattern.compile(real.pattern, flags=re.IGNORECASE | re.MULTILINE)
    text = "AB-12 cd-3\nef-4"
    assert late.findall(text) == real.findall(text)
    assert [match.span("word") for match in late.finditer(text)] == [m.span("word") for m in real.finditer(text)]
    assert late.split(text) == real.split(text)
    assert late.subn("", text) == real.subn("", text)


def test_a_pattern_of_bytes_matches_bytes() -> None:
    assert lazy_pattern.compile(rb"\d").findall(b"a1") == [b"1"]


def test_a_missing_attribute_is_missing() -> None:
    with pytest.raises(AttributeError, match="nothing"):
        lazy_pattern.compile("a").nothing  # type: ignore[attr-defined]  # noqa: B018


def test_copies_match_the_same() -> None:
    for copied in (copy.copy(lazy_pattern.compile("a+")), copy.deepcopy(lazy_pattern.compile("a+"))):
        assert copied.findall("aab") == ["aa"]


def test_every_pattern_of_the_program_can_be_compiled() -> None:
    done = subprocess.run([sys.executable, "-c", EVERY_PATTERN], cwd=source.ROOT, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr.decode()
    assert int(done.stdout) > 100
