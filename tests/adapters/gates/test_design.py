"""The gate `design`: import cycles, layer contracts and the score, in Python and TypeScript (R-GATE-2)."""

from __future__ import annotations

from collections.abc import Mapping

from idumb.domain.plans.plan import STRICT
from idumb.domain.proof import evidence
from idumb.domain.proof.evidence import Evidence
from idumb.domain.settings import GateSettings
from tests.support import changes
from tests.support.cases import every

CONTRACT = """\
[tool.importlinter]
root_package = "shop"

[[tool.importlinter.contracts]]
name = "layers go down"
type = "layers"
containers = ["shop"]
layers = ["web", "(orders) | stock", "store"]
ignore_imports = ["shop.store.* -> shop.web.legacy"]

[[tool.importlinter.contracts]]
name = "no SQL in web"
type = "forbidden"
source_modules = ["shop.web"]
forbidden_modules = ["sqlite3"]
"""
INI = """\
[importlinter]
root_packages =
    shop

[importlinter:contract:one]
name = layers go down
type = layers
layers =
    shop.web
    shop.store
"""
SHOP = {
    "pyproject.toml": CONTRACT,
    "src/shop/__init__.py": "",
    "src/shop/web/__init__.py": "",
    "src/shop/web/page.py": "from shop.store import rows\n",
    "src/shop/web/legacy.py": "",
    "src/shop/orders.py": "from .store.rows import load\n",
    "src/shop/stock.py": "",
    "src/shop/store/__init__.py": "",
    "src/shop/store/rows.py": "def load(): ...\n",
}
APP = {
    "src/a.ts": "import { b } from './b'\n",
    "src/b.ts": "import type { A } from './a'\nexport const b = 1\n",
    "src/lib/index.ts": "export * from '../b'\n",
}
PACKAGE = {
    "pkg/__init__.py": "from .a import one\n",
    "pkg/a.py": "import os\nfrom . import b\n",
    "pkg/b.py": "def late():\n    from pkg import a\n",
}


def judged(
    before: dict[str, str], edits: dict[str, str], asked: Mapping[str, GateSettings] | None = None
) -> Evidence | None:
    inputs = changes.inputs(before, {**before, **edits}, mode_of_plan=STRICT, asked=asked or {})
    return changes.judge(inputs).get("design")


BROKEN = [
    (PACKAGE, "pkg/b.py", "from pkg import a\n", "pkg/b.py:1: a new import cycle: pkg/b.py → pkg/a.py → pkg/b.py"),
    (PACKAGE, "pkg/b.py", "import os\nimport pkg.a\n", "pkg/b.py:2: a new import cycle: pkg/b.py → pkg/a.py"),
    (PACKAGE, "pkg/b.py", "from pkg import one\n", "pkg/b.py → pkg/__init__.py → pkg/a.py → pkg/b.py"),
    (APP, "src/b.ts", "import { a } from './a'\nexport const b = a\n", "src/b.ts → src/a.ts → src/b.ts"),
    (APP, "src/b.ts", "export * from './lib'\n", "src/b.ts:1: a new import cycle: src/b.ts → src/lib/index.ts → src/b"),
    (APP, "src/b.ts", "const a = require('./a.js')\n", "src/b.ts → src/a.ts → src/b.ts"),
    (SHOP, "src/shop/store/rows.py", "def load():\n    from ..web import page\n", "rows.py:2: shop.store.rows im"),
    (SHOP, "src/shop/stock.py", "import shop.orders\n", "stock imports shop.orders, which breaks the contract: la"),
    (SHOP, "src/shop/web/new.py", "import sqlite3\n", "shop.web.new imports sqlite3, which breaks the contract: no"),
    ({**SHOP, "pyproject.toml": "", ".importlinter": INI}, "src/shop/store/rows.py", "from shop.web import page\n",
     "shop.store.rows imports shop.web.page, which breaks the contract: layers go down"),
]  # fmt: skip


@every("before, path, text, words", BROKEN)
def test_a_new_cycle_and_a_broken_contract_are_named(before: dict[str, str], path: str, text: str, words: str) -> None:
    """R-GATE-2. The gate is not asked for without strict mode or a setting: then the same change passes."""
    proof = judged(before, {path: text})
    assert proof is not None
    assert proof.result == evidence.FAILED
    assert words in proof.output
    assert "design" not in changes.judge(changes.inputs(before, {**before, path: text}))


TYPES = {
    "src/a.ts": "export interface A {\n  x: string\n}\n\nexport const a = 1\n",
    "src/b.ts": "import { A, type A as B } from './a'\n\nexport const b = (x: A) => x\n",
}
BROKEN += [
    (
        {**TYPES, "src/b.ts": "import { A, a } from './a'\n"},
        "src/a.ts",
        "import { b } from './b'\n" + TYPES["src/a.ts"],
        "src/a.ts:1: a new import cycle: src/a.ts → src/b.ts → src/a.ts",
    )
]
HONEST = [
    (TYPES, "src/a.ts", "import { b } from './b'\n" + TYPES["src/a.ts"]),
    (PACKAGE, "pkg/b.py", "def late():\n    from pkg import a\n    return a\n"),
    (PACKAGE, "pkg/b.py", "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from pkg import a\n"),
    (PACKAGE, "pkg/c.py", "from pkg import a, b\nimport json\n"),
    ({**PACKAGE, "pkg/b.py": "from pkg import a\n"}, "pkg/a.py", "import os\nimport re\nfrom . import b\n"),
    ({"a.py": "import b\n", "b.py": "import c\n", "c.py": "import a\n"}, "b.py", "import a\nimport c\n"),
    (APP, "src/b.ts", "import type { A, C } from './a'\nexport const b = 2\n"),
    (APP, "src/c.ts", "import x from 'react'\nimport { a } from './a'\nimport './style.css'\n"),
    (SHOP, "src/shop/web/page.py", "from shop.store import rows\nfrom shop import orders\n"),
    (SHOP, "src/shop/store/rows.py", "from shop.web.legacy import old\n"),
    (SHOP, "src/shop/store/__init__.py", "from . import rows\nimport sqlite3\n"),
    (SHOP, "tests/test_page.py", "import sqlite3\nfrom shop.web import page\n"),
    ({**SHOP, "pyproject.toml": "[tool.importlinter\n"}, "src/shop/stock.py", "import shop.orders\n"),
    (SHOP, "src/shop/stock.py", "import (\n"),
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
