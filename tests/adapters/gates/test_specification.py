"""The gate `specification`: new and changed public functions in Python, JavaScript, TypeScript and Go (R-GATE-2)."""

from __future__ import annotations

import pytest

from idumb.domain.plans.plan import STRICT
from idumb.domain.proof import evidence
from idumb.domain.proof.evidence import Evidence
from tests.support import changes

PY = '''\
def load(path: str) -> str:
    """Return the text. Raises KeyError if there is none."""
    if not path:
        raise KeyError(path)
    return path
'''
TS = """\
/** @throws if there is no path */
export function load(path: string): string {
  if (!path) { throw new Error('no path') }
  return path
}
"""
JS = """\
/**
 * @param {string} path
 * @returns {string}
 */
export const load = (path) => {
  return path
}
"""
GO = """\
package web

// Load returns the text.
func Load(path string) (string, error) {
\treturn path, nil
}
"""


def judge(before: dict[str, str], after: dict[str, str]) -> Evidence | None:
    return changes.judge(changes.inputs(before, after, mode_of_plan=STRICT)).get("specification")


BROKEN = [
    ("a.py", PY.replace(": str)", ")"), "a.py:1: load does not declare the type of path"),
    ("a.py", PY.replace(" -> str", ""), "a.py:1: load does not declare its output"),
    ("a.py", PY.replace("Raises KeyError if there is none.", ""), "load raises KeyError, and its docstring does not s"),
    ("a.py", "class A:\n    def drop(self) -> None:\n        os.remove('a')\n", "a.py:2: A.drop has a side effect (it"),
    ("a.py", "def save(path: str) -> None:\n    with open(path, 'w') as f:\n        pass\n", "it writes a file"),
    ("a.ts", TS.replace("path: string", "path"), "a.ts:2: load does not declare the types of its inputs"),
    ("a.ts", TS.replace("): string", ")"), "load does not declare its output"),
    ("a.ts", TS.partition("\n")[2], "a.ts:1: load throws, and its comment does not say so"),
    ("a.js", JS.replace(" * @returns {string}\n", ""), "a.js:4: load does not declare its output"),
    ("a.js", JS.replace("(path)", "(path, strict)"), "load does not declare the types of its inputs"),
    ("a.go", GO.replace("// Load returns the text.\n", ""), "a.go:3: Load has no doc comment"),
    ("a.go", GO + "\nfunc (s *Store) Get() int {\n\treturn 1\n}\n", "Store.Get has"),
]  # fmt: skip


@pytest.mark.parametrize(("path", "after", "words"), BROKEN)
def test_a_public_function_that_declares_too_little_is_named(path: str, after: str, words: str) -> None:
    """R-GATE-2. The gate is not asked for without strict mode or a setting: then the same change passes."""
    proof = judge({}, {path: after})
    assert proof is not None
    assert proof.result == evidence.FAILED
    assert words in proof.output
    assert "specification" not in changes.judge(changes.inputs({}, {path: after}))


HONEST = [
    ("a.py", PY),
    ("a.py", "def _inner(path):\n    return path\n\n\nclass _Hidden:\n    def get(self, x):\n        return x\n"),
    ("a.py", "def f(x: int) -> int:\n    try:\n        raise ValueError\n    except ValueError:\n        return x\n"),
    ("a.py", "class A:\n    @override\n    def f(self, x):\n        return x\n\n    def g(self):\n        pass\n"),
    ("a.py", "def f() -> int:\n    def inner(x):\n        raise ValueError\n    return 1\n"),
    ("a.py", 'def f(x: int) -> None:\n    """Remove it."""\n    os.remove(str(x))\n    raise NotImplementedError\n'),
    ("tests/test_a.py", "def load(path):\n    return path\n"),
    ("a.ts", TS),
    ("a.ts", "function inner(path) { return path }\nexport const LIMIT = 3\nexport function f(x = 1): void {}\n"),
    ("a.js", JS),
    ("a.js", "export function f() {\n  try { g() } catch (e) { throw e }\n}\n"),
    ("a.go", GO),
    ("a.go", GO.replace("Load", "load")),
    ("a.go", GO + '\nfunc (s *Store) String() string {\n\treturn ""\n}\n'),
    ("main.go", GO.replace("package web", "package main").replace("// Load returns the text.\n", "")),
]  # fmt: skip


@pytest.mark.parametrize(("path", "after"), HONEST)
def test_an_honest_function_passes(path: str, after: str) -> None:
    proof = judge({}, {path: after})
    assert proof is None or proof.passed, proof


@pytest.mark.parametrize(
    ("path", "before", "after"),
    [
        ("a.py", "def load(path):\n    return path\n", "def load(path):\n    return path + path\n"),
        ("a.py", "def load(path):\n    return path\n", "def load(path, strict: bool):\n    return path\n"),
        ("a.js", "export function load(path) {\n  return 1\n}\n", "export function load(path) {\n  return 2\n}\n"),
        ("a.go", GO.replace("// Load returns the text.\n", ""), GO.replace("// Load returns the text.\n", "\n")),
    ],
)
def test_what_was_not_declared_before_the_task_is_none_of_it(path: str, before: str, after: str) -> None:
    proof = judge({path: before}, {path: after})
    assert proof is None or proof.passed


def test_a_setting_asks_for_the_gate() -> None:
    inputs = changes.inputs({}, {"a.py": "def load(path):\n    return path\n"}, asked=("specification",))
    assert changes.judge(inputs)["specification"].result == evidence.FAILED


def test_a_file_that_does_not_parse_is_not_judged() -> None:
    assert judge({}, {"a.py": "def load(path:\n"}) is None
