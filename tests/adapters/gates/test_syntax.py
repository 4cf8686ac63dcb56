"""The gate `syntax`: broken and honest files in the formats that it parses (R-GATE-3)."""

from __future__ import annotations

from idumb.domain.proof import evidence
from idumb.gates import registry, syntax
from tests.support import changes
from tests.support.cases import every

CONFLICT = '{\n<<<<<<< HEAD\n  "a": 1\n=======\n  "a": 2\n>>>>>>> theirs\n}\n'

# path, before (None: the file is new), after, words of the violation
BROKEN = [
    ("a.py", None, "def f(:\n    pass\n", "a.py:1: invalid syntax"),
    ("a.py", "x = 1\n", "x = 1\nprint(f'{x}'\n", "a.py:2: '(' was never closed"),
    ("a.py", "def f():\n    return 1\n", "def f():\nreturn 1\n", "expected an indented block"),
    ("a.pyi", None, "class A\n    x: int\n", "a.pyi:1: expected ':'"),
    ("src/a.py", "x = 1\n", "```python\nx = 1\n```\n", "src/a.py:1: invalid syntax"),
    ("a.py", "x = 1\n", "<<<<<<< HEAD\nx = 1\n=======\nx = 2\n>>>>>>> b\n", "a.py:1: an unresolved merge conflict"),
    ("templates.py", "x = 1\n", "x = {{ \n", "templates.py:1"),
    ("package.json", '{"a": 1}', '{"a": 1,}', "package.json:1"),
    ("package.json", '{"a": "${x}"}', '{"a": "${x}"', "package.json:1"),
    ("data.json", '{"a": 1}', '{"a": 1, // one\n}', "data.json:1"),
    ("data.json", None, '{"a": 1,}', "data.json:1"),
    ("data.json", '{"a": 1}', "", "data.json:1: Expecting value"),
    ("data.json", None, CONFLICT, "data.json:2: an unresolved merge conflict"),
    ("nb.ipynb", '{"cells": []}', '{"cells": [}', "nb.ipynb:1"),
    ("a.yaml", "a: 1\n", "a: [1\n", "a.yaml:2"),
    (".github/workflows/ci.yml", "on: push\n", "on: push\nenv:\n  A: ${{ x }}\n B: 1\n", "ci.yml:4"),
    ("a.yml", None, "a:\n\t- b\n", "a.yml:2"),
    ("a.yml", "a: 1\n", 'a: "1\n', "a.yml"),
    ("pyproject.toml", "[a]\nb = 1\n", "[a]\nb = \n", "pyproject.toml:2: Invalid value"),
    ("a.toml", None, "[a]\nb = 1\nb = 2\n", "a.toml:3: Cannot overwrite a value"),
    ("a.toml", "a = 1\n", "a = 1\n[[b]\n", "a.toml:2"),
]
HONEST = [
    (".mocharc.json", "{}", '{"strict": ["a"],}'),
    ("a.py", None, "def f() -> int:\n    return 1\n"),
    ("a.py", None, ""),
    ("a.py", "def f(:\n", "def f(::\n"),  # it did not parse before
    ("a.py", "x = 1\n", "\ufeffx = '\\d'\n"),
    ("a.py", "x = 1\n", "type X = int\n\ndef f[T](x: T) -> T: ...\n"),
    ("a.py", "x = 1\n", "class A[T]:\n    pass\n"),
    ("a.py", "x = 1\n", 'x = f"{d["a"]}"\n'),
    ("a.py", "x = 1\n", "x = f'{\n    a\n}'\n"),
    ("a.py", "x = 1\n", "x = f'''{\nd['''a''']}'''\n"),
    ("a.py", "x = 1\n", "x = t'{a}'\n"),
    ("a.py", "x = 1\n", "try:\n    f()\nexcept A, B:\n    pass\n"),
    ("a.py", None, "#!/usr/bin/python2\nprint 'a'\n"),
    ("templates/setup.py", None, "from {{ name }} import *\n"),
    ("{{cookiecutter.slug}}/a.py", None, "import {{cookiecutter.slug}}\n"),
    ("tests/fixtures/bad.py", None, "def f(:\n"),
    ("tests/invalid/bad.json", None, "{"),
    ("a.py", "x = 1\n", b"# -*- coding: latin-1 -*-\nx = '\xe4'\n"),
    ("a.py", None, "x = " + "(" * 500 + ")" * 500),
    ("a.json", None, '{"a": NaN, "n": ' + "9" * 5000 + "}"),
    ("a.json", None, '{"a": 1}\n{"a": 2}\n'),  # JSON lines
    ("a.json", None, "[" * 20000 + "]" * 20000),
    ("a.json", None, "\n"),
    ("tsconfig.json", '{"a": 1}', '{\n  // why\n  "a": ["//", 1,], /* b */\n}'),
    (".vscode/settings.json", None, '{"a": 1,}'),
    ("data.json", None, '// generated\n{"a": "http://x", "b": [1,]}'),
    ("data.json", '{"a": 1, // one\n}', '{"a": 2, // two\n}'),
    ("values.json", None, '{ {{ if .A }} "a": 1 {{ end }} }'),
    ("a.json", None, b"\xff\xfe{\x00}\x00"),
    ("a.yaml", None, "a: !Ref b\nc: !Sub\n  - x\n---\nd: *e\n"),
    ("chart/templates/a.yaml", None, "{{- if .Values.a }}\na: {{ .Values.a }}\n{{- end }}\n"),
    ("a.yml", "a: 1\n", "on: push\nenv:\n  A: ${{ x }}\n"),
    ("a.yml", "a: 1\n", "a: 1\na: 2\nb: >\n  text\n"),
    ("a.toml", None, "[a]\nb = { c = 1, d = [1,\n2] }\n"),
    ("a.toml", None, "a = {\n  b = 1,\n}\n"),  # TOML 1.1
    ("a.toml", None, "[a]\r\nb = 1\r\n"),
    ("a.toml", None, "version = @VERSION@\n"),
    ("a.rb", "x", "def ("),
]  # fmt: skip


def judge(path: str, before: str | None, after: str | bytes) -> evidence.Evidence | None:
    inputs = changes.inputs({} if before is None else {path: before}, {path: after})
    return changes.judge(inputs).get("syntax")


@every("path, before, after, words", BROKEN)
def test_a_new_error_is_named_with_its_line(path: str, before: str | None, after: str, words: str) -> None:
    proof = judge(path, before, after)
    assert proof is not None
    assert proof.result == evidence.FAILED
    assert words in proof.output


@every("path, before, after", HONEST)
def test_an_honest_file_passes_or_is_not_judged(path: str, before: str | None, after: str | bytes) -> None:
    proof = judge(path, before, after)
    assert proof is None or proof.passed, proof.output


def test_a_broken_file_that_moves_is_not_new() -> None:
    assert changes.judge(changes.inputs({"a.py": "def f(:\n"}, {"b.py": "def f(:\n"})) == {}


def test_all_files_are_judged_and_named() -> None:
    proof = changes.judge(changes.inputs({}, {"a.py": "x = 1\n", "b.json": "{", "c.toml": "x", "d.md": "{"}))["syntax"]
    assert [line.partition(":")[0] for line in proof.output.splitlines()] == ["b.json", "c.toml"]
    proof = changes.judge(changes.inputs({}, {"a.py": "x = 1\n", "b.json": "{}", "c.md": ""}))["syntax"]
    assert (proof.result, proof.output) == (evidence.PASSED, "parsed 2 of 3 changed files")


def test_the_registry_loads_the_gate_for_every_language_that_it_parses() -> None:
    assert set(registry._PARSED) == syntax._PARSERS.keys()
