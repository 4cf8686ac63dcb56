"""The gate `change-class`: the class that public names show, in Python (R-GATE-4)."""

from __future__ import annotations

from idumb.domain.plans.plan import Task
from idumb.domain.proof import evidence
from idumb.domain.proof.evidence import Evidence
from tests.support import changes
from tests.support.cases import every

PY = """\
import os
from .x import other


LIMIT = 3


def load(path, strict=False):
    return path


def _private(path):
    return path


class Config(object):
    def __init__(self):
        self.size = 1

    def read(self, name):
        return name
"""


def judge(declared: str, path: str, after: str, before: str = PY) -> Evidence:
    after_texts = {path: after} if after else {}
    inputs = changes.inputs({path: before}, after_texts, task=Task("T1-01", "A task", change=declared))
    return changes.judge(inputs)["change-class"]


def edited(*edits: tuple[str, str]) -> str:
    text = PY
    for old, new in edits:
        assert old in text
        text = text.replace(old, new, 1)
    return text


BROKEN = [
    ("preserving", (("LIMIT = 3", "LIMIT = 3\nMOST = 4"),), "MOST was added: the change is extending"),
    ("extending", (("strict=False", "strict=True"),), "load has another default of strict"),
    ("modifying", (("path, strict=False", "path"),), "load no longer takes strict: the change is b"),
    ("modifying", (("    def read", "    def get"),), "Config.read was removed"),
    ("extending", (("name):", "name, size):"),), "Config.read now requires size"),
    ("extending", (("self.size", "self._size"),), "Config.size was removed"),
    ("modifying", (("    def read(self, name)", "    @property\n    def read(self)"),), "is a property"),
    ("preserving", (("strict=False", "strict=False, *, again=None"),), "load takes a new again"),
]  # fmt: skip


@every("declared, edits, words", BROKEN)
def test_a_higher_class_than_declared_is_named(declared: str, edits: tuple[tuple[str, str], ...], words: str) -> None:
    """R-GATE-4. Without a declared class, the same change is not judged."""
    proof = judge(declared, "src/a.py", edited(*edits))
    assert proof.result == evidence.FAILED
    assert words in proof.output
    assert f"and T1-01 declares {declared}" in proof.output
    assert "change-class" not in changes.judge(changes.inputs({"a.py": PY}, {"a.py": edited(*edits)}))


HONEST = [
    ("preserving", (("    return path\n", "    return os.fspath(path)\n"), ("_private(path)", "_other()"))),
    ("preserving", (("Config(object)", "Config"), ("import os\n", "import os\nimport re\n"))),
    ("extending", (("strict=False", "strict=False, *, again=None"), ("LIMIT = 3", "LIMIT = 4"))),
    ("breaking", (("def load", "def read"),)),
]  # fmt: skip


@every("declared, edits", HONEST)
def test_an_honest_change_passes(declared: str, edits: tuple[tuple[str, str], ...]) -> None:
    proof = judge(declared, "src/a.py", edited(*edits))
    assert (proof.result, proof.output.partition(";")[0]) == (evidence.PASSED, f"declared {declared}")


RESPELLED = [
    (PY, "\ufeff" + PY.replace("\n", "\r\n")),
    ("def f(x):\n    return x\n", "from b import f\n"),
    ("A = 1\nB = 2\n", "import os\nos.environ['X'], A, B = 0, 1, 2\n"),
    ("class A:\n    @staticmethod\n    def f(x): ...\n", "class A:\n    @classmethod\n    def f(cls, x): ...\n"),
    ("class A:\n    def f(self, x): ...\n", "class A:\n    @staticmethod\n    def f(x): ...\n"),
    (
        "class A:\n    def __init__(self): self.x = 1\n",
        "class A:\n    def __init__(self): self._set()\n    def _set(me): me.x, me._y = 1, 2\n",
    ),
    ("class A:\n    x = 1\n", "class A:\n    x = 1\n    def __repr__(self): ...\n"),
]


@every("before, after", RESPELLED)
def test_another_spelling_of_the_same_names_is_no_change(before: str, after: str) -> None:
    proof = judge("preserving", "a.py", after, before)
    assert (proof.result, proof.output.partition(";")[0]) == (evidence.PASSED, "declared preserving")


@every(
    "path, before, after, words",
    [
        ("a.py", "class A:\n    def f(self): ...\n", "class A(_B):\n    pass\n", "A.f was removed"),
        (
            "a.py",
            "class A:\n    def __init__(self): ...\n",
            "@dataclass\nclass A:\n    pass\n",
            "A.__init__ was removed",
        ),
        ("a.py", "class A(str, Enum):\n    X = 'x'\n", "class A(StrEnum):\n    X = 'x'\n", "A lost a base class"),
        ("a.py", "def f(): ...\n", "from b import *\n", "f was removed"),
        ("a.py", "f = 1\n", "def __getattr__(name): ...\n", "f was removed"),
        ("src/a.py", "def load(): ...\n", "def (\n", "src/a.py: idumb cannot read the file"),
        ("src/a.py", "def load(): ...\n", "load = make()\n", "load was of kind function and is of kind attribute"),
    ],
)
def test_what_the_names_do_not_show_is_unknown_and_never_preserving(
    path: str, before: str, after: str, words: str
) -> None:
    proof = judge("preserving", path, after, before)
    assert proof.result == evidence.UNPROVEN
    assert proof.output.startswith("unknown whether the change is preserving: ")
    assert words in proof.output
    assert judge("breaking", path, after, before).passed


@every("path", ["src/a.js", "web/a.go", "src/a.rs", "src/A.java", "lib/a.c", "a.sh", "src/a.rb"])
def test_another_language_is_not_judged_in_words(path: str) -> None:
    """R-GATE-2. It fails nothing, and hides nothing that is wrong elsewhere."""
    proof = judge("preserving", path, "new\n", "old\n")
    words = f"not judged, because idumb reads the public names of Python only: {path}"
    assert (proof.result, proof.level, proof.output) == (evidence.UNPROVEN, 0, words)
    task = Task("T1-01", "A task", change="preserving")
    both = changes.inputs({path: "old\n", "src/a.py": PY}, {path: "new\n"}, task=task)
    assert changes.judge(both)["change-class"].result == evidence.FAILED
    beside = changes.inputs({path: "old\n"}, {path: "new\n", "src/a.py": "_a = 1\n"}, task=task)
    assert changes.judge(beside)["change-class"].output.endswith(f"; {words}")


def test_a_module_that_becomes_a_package_is_no_change() -> None:
    task = Task("T1-01", "A task", change="preserving")
    package = changes.inputs({"src/a.py": PY}, {"src/a/__init__.py": PY}, task=task)
    assert changes.judge(package)["change-class"].passed


@every(
    "path",
    [
        *("tests/test_a.py", "src/_a.py", "README.md", "web/a_test.go", "src/a.test.ts", "app/tests.py"),
        *("vendor/x/a.py", "web/node_modules/x/a.js", "dist/a.js", "scripts/a.py", "setup.py", "pkg/__main__.py"),
    ],
)
def test_private_files_and_tests_have_no_public_names(path: str) -> None:
    inputs = changes.inputs({path: ""}, {path: "def load(): ...\n"}, task=Task("T1-01", "A task", change="preserving"))
    proof = changes.judge(inputs).get("change-class")
    assert proof is None or proof.passed


def test_a_deleted_module_breaks_its_callers() -> None:
    proof = judge("modifying", "src/a.py", "")
    assert "src/a.py: LIMIT was removed: the change is breaking" in proof.output


def test_a_name_that_was_assigned_with_others_is_missed_when_it_goes() -> None:
    proof = judge("modifying", "a.py", "ON = 1\n", "ON, OFF = 1, 0\n")
    assert "a.py: OFF was removed: the change is breaking" in proof.output
