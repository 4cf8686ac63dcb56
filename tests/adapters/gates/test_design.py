"""The gate `design`: import cycles and the score, in Python (R-GATE-2)."""

from __future__ import annotations

from collections.abc import Mapping

from idumb.domain.proof import evidence
from idumb.domain.proof.evidence import Evidence
from idumb.domain.settings import GateSettings
from tests.support import changes
from tests.support.cases import every

PACKAGE = {
    "pkg/__init__.py": "from .a import one\n",
    "pkg/a.py": "import os\nfrom . import b\n",
    "pkg/b.py": "def late():\n    from pkg import a\n",
}


def judged(
    before: dict[str, str], edits: dict[str, str], asked: Mapping[str, GateSettings] | None = None
) -> Evidence | None:
    inputs = changes.inputs(before, {**before, **edits}, strict=True, asked=asked or {})
    return changes.judge(inputs).get("design")


BROKEN = [
    (PACKAGE, "pkg/b.py", "from pkg import a\n", "pkg/b.py:1: a new import cycle: pkg/b.py → pkg/a.py → pkg/b.py"),
    (PACKAGE, "pkg/b.py", "import os\nimport pkg.a\n", "pkg/b.py:2: a new import cycle: pkg/b.py → pkg/a.py"),
    (PACKAGE, "pkg/b.py", "from pkg import one\n", "pkg/b.py → pkg/__init__.py → pkg/a.py → pkg/b.py"),
]  # fmt: skip


@every("before, path, text, words", BROKEN)
def test_a_new_cycle_is_named(before: dict[str, str], path: str, text: str, words: str) -> None:
    """R-GATE-2. The gate is not asked for without strict mode or a setting: then the same change passes."""
    proof = judged(before, {path: text})
    assert proof is not None
    assert proof.result == evidence.FAILED
    assert words in proof.output
    assert "design" not in changes.judge(changes.inputs(before, {**before, path: text}))


def test_a_cycle_is_named_at_the_import_that_closes_it() -> None:
    before = {"a.py": "import x\n", "x.py": "import b\n", "b.py": ""}  # so a.py led to b.py before
    words = judged(before, {"a.py": "import x\nimport b\n", "b.py": "import a\n"}).output  # type: ignore[union-attr]
    assert words.startswith("b.py:1: a new import cycle: b.py → a.py → b.py")


HONEST = [
    (PACKAGE, "pkg/b.py", "def late():\n    from pkg import a\n    return a\n"),
    (PACKAGE, "pkg/b.py", "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from pkg import a\n"),
    (PACKAGE, "pkg/c.py", "from pkg import a, b\nimport json\n"),
    ({**PACKAGE, "pkg/b.py": "from pkg import a\n"}, "pkg/a.py", "import os\nimport re\nfrom . import b\n"),
    ({"a.py": "import b\n", "b.py": "import c\n", "c.py": "import a\n"}, "b.py", "import a\nimport c\n"),
]  # fmt: skip


@every("before, path, text", HONEST)
def test_an_honest_import_passes(before: dict[str, str], path: str, text: str) -> None:
    proof = judged(before, {path: text})
    assert proof is None or proof.passed, proof


SIMPLE = "def f(x):\n    return x\n"
TANGLED = "import os\nimport re\n" + "def f(x):\n    if x and x > 1:\n        return 1 if x else 2\n    return x\n"


def test_the_score_and_its_parts_are_words_until_the_configuration_has_a_threshold() -> None:
    proof = judged({"a.py": SIMPLE}, {"a.py": TANGLED})
    assert proof is not None
    assert proof.passed
    words = "score 18 of 100: complexity 0.0 → 50.0 branches per 100 lines, coupling 0.0 → 2.0 imports per file"
    assert proof.output == words
    asked = {"design": GateSettings(threshold=80)}
    failed = judged({"a.py": SIMPLE}, {"a.py": TANGLED}, asked=asked)
    assert failed is not None
    assert failed.output == f"{words}; the threshold is 80"
    better = judged({"a.py": TANGLED}, {"a.py": SIMPLE}, asked=asked)
    assert better is not None
    assert better.passed


def test_new_files_have_no_score_and_renamed_ones_no_new_cycle() -> None:
    proof = judged({}, {"a.py": TANGLED})
    assert proof is not None
    assert proof.output == "no score: no changed file existed before"
    tangled = {"a.py": "import b\n", "b.py": "import a\n"}
    inputs = changes.inputs(
        {"old/a.py": "import c\n", "old/c.py": ""}, {"a.py": "import c\n", "c.py": ""}, asked=("design",)
    )
    assert "design" not in changes.judge(inputs)
    assert judged(tangled, {"a.py": "import b\nimport os\n"}).passed  # type: ignore[union-attr]
