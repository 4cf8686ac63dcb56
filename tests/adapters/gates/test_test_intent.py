"""The gate `test-intent`: tests that assert nothing, and honest ones, in Python (R-GATE-3)."""

from __future__ import annotations

from idumb.domain.proof import evidence
from tests.support import changes
from tests.support.cases import every

ASSERTS = "def test_a():\n    assert f() == 1\n"
CASE = "import unittest\n\nclass AThing(unittest.TestCase):\n    def test_a(self):\n        self.assertEqual(f(), 1)\n"

# path, before (None: the file is new), after, words
BROKEN = [
    ("test_a.py", ASSERTS, "def test_a():\n    f()\n", "test_a.py:1: the test test_a asserts nothing any more"),
    ("test_a.py", None, "def test_a():\n    x = f()\n    print(x)\n", "the test test_a is new and asserts nothing"),
    ("test_a.py", ASSERTS, "def test_a():\n    f()\n    assert True\n", "asserts nothing any more"),
    (
        "tests/test_a.py",
        CASE,
        CASE.replace("self.assertEqual(f(), 1)", "f()"),
        "AThing.test_a asserts nothing any more",
    ),
    ("a_test.py", None, "class TestA:\n    async def test_b(self):\n        await f()\n", "TestA.test_b is new"),
    ("test_a.py", None, "def help():\n    return 1\n\ndef test_a():\n    help()\n", "test_a is new"),
]
CALLS = "def test_a():\n    f()\n"
BROKEN += [
    ("test_a.py", ASSERTS, "\ufeff" + CALLS, "test_a asserts nothing any more"),
    ("test_a.py", None, "def test_a():\n    return f() == 1\n", "test_a is new and asserts nothing"),
    ("test_a.py", ASSERTS, "def test_a():\n    assert (f() == 1, 'f is wrong')\n", "asserts nothing any more"),
    ("test_a.py", ASSERTS, "def test_a():\n    assert f() == 1 or True\n", "asserts nothing any more"),
    ("test_a.py", ASSERTS, "def test_a():\n    return\n    assert f() == 1\n", "asserts nothing any more"),
    ("test_a.py", ASSERTS, "def test_a():\n    def later():\n        assert f() == 1\n", "asserts nothing any more"),
    (
        "test_a.py",
        ASSERTS,
        "def test_a():\n    try:\n        assert f() == 1\n    except:\n        pass\n",
        "asserts nothing",
    ),
    ("test_a.py", ASSERTS, "@pytest.mark.skip\n" + ASSERTS, "test_a is skipped now, whatever happens"),
]
HONEST = [
    ("test_a.py", None, "def test_a():\n    subprocess.run(['x'], check=True)\n"),
    ("test_a.py", None, "def test_a(client):\n    client.get('/').raise_for_status()\n"),
    ("test_a.py", None, "@pytest.fixture()\ndef test_data():\n    return 1\n"),
    ("test_a.py", None, "def test_import():\n    import calc\n"),
    ("src/ab_test.py", None, "def test_significance(a: int, b: int) -> bool:\n    return a < b\n"),
    ("test_a.py", ASSERTS, "@pytest.mark.skipif(WINDOWS, reason='fork')\n" + ASSERTS),
    (
        "test_a.py",
        None,
        "def test_a():\n    try:\n        f()\n    except ValueError:\n        pass\n    else:\n        assert 0\n",
    ),
    ("test_a.py", None, "def test_a():\n    def run():\n        assert f() == 1\n    each(run)\n"),
    ("test_a.py", ASSERTS, "def test_a():\n    assert f() == 2\n"),
    ("test_a.py", "def test_a():\n    f()\n", "def test_a():\n    g()\n"),  # it did not assert before
    ("test_a.py", None, "import pytest\n\ndef test_a():\n    with pytest.raises(ValueError):\n        f()\n"),
    ("test_a.py", None, "def check(x):\n    assert x\n\ndef same(x):\n    check(x)\n\ndef test_a():\n    same(f())\n"),
    ("test_a.py", None, "from tests.support import run\n\ndef test_a():\n    run('x')\n"),
    ("test_a.py", None, "from .helpers import run\n\ndef test_a():\n    run('x')\n"),
    ("test_a.py", None, "class TestA(Base):\n    def test_a(self):\n        self.run_it(1)\n"),
    ("test_a.py", None, "def test_a(mock):\n    f(mock)\n    mock.assert_called_once_with(1)\n"),
    ("test_a.py", None, "@given(integers())\ndef test_a(n):\n    if f(n) != n:\n        raise AssertionError\n"),
    ("test_a.py", None, "@pytest.mark.skip\ndef test_a():\n    f()\n"),
    ("test_a.py", None, "def test_a():\n    f()  # must not raise\n"),
    ("test_a.py", None, "def test_it_does_not_crash():\n    f()\n"),
    ("test_a.py", None, "def test_a(:\n"),
    ("conftest.py", None, "def test_a():\n    f()\n"),
]


def judge(path: str, before: str | None, after: str) -> evidence.Evidence | None:
    inputs = changes.inputs({} if before is None else {path: before}, {path: after})
    return changes.judge(inputs).get("test-intent")


@every("path, before, after, words", BROKEN)
def test_a_test_that_asserts_nothing_is_named(path: str, before: str | None, after: str, words: str) -> None:
    proof = judge(path, before, after)
    assert proof is not None
    assert (proof.result, words in proof.output) == (evidence.FAILED, True), proof.output


@every("path, before, after", HONEST)
def test_an_honest_test_passes(path: str, before: str | None, after: str) -> None:
    proof = judge(path, before, after)
    assert proof is None or proof.passed, proof.output


def test_another_language_is_not_judged() -> None:
    assert judge("a_test.go", None, "package a\n\nfunc TestB(t *testing.T) {\n\tF()\n}\n") is None
    assert judge("a.test.js", None, "it('adds', () => {\n  add(1)\n})\n") is None


def test_a_file_of_tests_that_moves_is_not_new() -> None:
    silent = "def test_a():\n    f()\n"
    assert "test-intent" not in changes.judge(changes.inputs({"test_a.py": silent}, {"test_b.py": silent}))


@every("after", ["import b as a\n\n\n" + CALLS, "\n" + CALLS.replace("f()", "g()")])
def test_a_test_that_moves_to_another_file_is_not_new(after: str) -> None:
    moved = changes.inputs({"old/test_a.py": "import a\n\n\n" + CALLS}, {"new/test_a.py": after})
    assert changes.judge(moved)["test-intent"].passed
    weaker = changes.inputs({"old/test_a.py": ASSERTS}, {"new/test_a.py": after})
    assert "test_a asserts nothing any more" in changes.judge(weaker)["test-intent"].output
