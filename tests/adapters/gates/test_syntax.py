"""The gate `syntax`: broken and honest files in the languages that it parses (R-GATE-3)."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from idumb.domain.proof import evidence
from idumb.gates import registry, syntax
from idumb.gates.languages import source_syntax
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
    ("tsconfig.json", '{"a": 1}', '{"a": [1}', "tsconfig.json:1"),
    ("nb.ipynb", '{"cells": []}', '{"cells": [}', "nb.ipynb:1"),
    ("a.yaml", "a: 1\n", "a: [1\n", "a.yaml:2"),
    (".github/workflows/ci.yml", "on: push\n", "on: push\nenv:\n  A: ${{ x }}\n B: 1\n", "ci.yml:4"),
    ("a.yml", None, "a:\n\t- b\n", "a.yml:2"),
    ("a.yml", "a: 1\n", 'a: "1\n', "a.yml"),
    ("pyproject.toml", "[a]\nb = 1\n", "[a]\nb = \n", "pyproject.toml:2: Invalid value"),
    ("a.toml", None, "[a]\nb = 1\nb = 2\n", "a.toml:3: Cannot overwrite a value"),
    ("a.toml", "a = 1\n", "a = 1\n[[b]\n", "a.toml:2"),
    ("a.sh", None, "x() {\n", "a.sh:2: not valid in bash: syntax error: unexpected end of file"),
    ("a.sh", "echo\n", "#!/bin/sh\nif true; then\n  echo\n", "a.sh:4"),
    ("a.bash", "echo\n", 'echo\necho "a\n', "a.bash:2: not valid in bash: unexpected EOF"),
]
PARSED_BY_THE_EXTRA = [
    ("a.js", None, "export function f( {\n  return 1\n}\n", "a.js:1: not valid JavaScript"),
    ("a.jsx", "const a = <b>c</b>\n", "const a = <b>c</b\n", "a.jsx:1"),
    ("a.mjs", "f()\n", "f()\nclass {\n", "a.mjs:2"),
    ("a.ts", None, "interface A {\n  a: string\n", "a.ts:2: not valid TypeScript: } is missing"),
    ("a.ts", "let a: number = 1\n", "let a: = 1\n", "a.ts:1"),
    ("a.tsx", "f()\n", "const a: B = (<b>;\n", "a.tsx:1"),
    ("a.go", "package a\n", "package a\n\nfunc F() {\n\treturn 1 +\n}\n", "a.go:4: not valid Go"),
    ("a.go", None, "package a\n\nfunc F( {\n}\n", "a.go:3"),
    ("a.go", None, "package a\nvar x = {\n", "a.go:2"),
    ("a.rs", None, "fn f() -> u8 {\n    let x = ;\n    x\n}\n", "a.rs:2: not valid Rust"),
    ("a.rs", "fn f() {}\n", "fn f() {\n    if x {\n}\n", "a.rs"),
    ("a.rs", "fn f() {}\n", "fn f( {}\n", "a.rs:1"),
    ("a.c", "int f(void) { return 1; }\n", "int f(void) { return 1;\n", "a.c:1: not valid C: } is missing"),
    ("a.c", "int f(void) { return 1; }\n", "int f(void) { return 1 }\n", "a.c:1: not valid C: ; is missing"),
    ("a.h", "int f(int a);\n", "int f(int a;\n", "a.h:1"),
    ("A.java", None, "class A {\n  int f() { return 1 }\n}\n", "A.java:2: not valid Java: ; is missing"),
    ("A.java", "class A {}\n", "class A {\n  void f( {}\n}\n", "A.java:2"),
    ("A.java", "class A {}\n", "class A {\n", "A.java:1"),
]
HONEST = [
    ("a.ts", None, "interface Box<in out T> {\n  get(): T\n}\nexport type * from './b'\n"),
    ("a.ts", None, "export default abstract class {\n}\n"),
    ("a.mjs", None, "import data from './data.json' assert { type: 'json' }\n"),
    ("a.rs", None, 'unsafe extern "C" {\n    safe fn f();\n}\n'),
    ("A.java", None, "import module java.base;\n\nclass A {}\n"),
    ("pyrightconfig.json", "{}", '{"strict": ["a"],}'),
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
    ("a.sh", "echo\n", "x() {\n  [[ $1 == +(a|b) ]] && cat <<E\n$(ls) {{ x }}\nE\n}\n"),
    ("a.sh", None, "#!/usr/bin/env fish\nif true\n  echo\nend\n"),
    ("a.sh", "if\n", "if true\n"),
    ("tests/fixtures/bad.sh", None, "if\n"),
    ("a.js", None, "#!/usr/bin/env node\nimport a, {b} from './c.js'\nexport default async () => { await a?.b }\n"),
    ("a.js", None, "class A { #b = 1; static { f() } get c() { return `${this.#b}` } }\n"),
    ("a.js", None, "// @flow\nfunction f(a: number): string { return '' }\n"),
    ("a.js", "f(\n", "g(\n"),
    ("a.ts", None, "export const a = <T,>(b: T) => b satisfies T\nexport type A<T> = T extends infer U ? U : never\n"),
    ("a.d.ts", None, "export declare function f<T>(a: T): import('./b').B<T>;\n//# x\n"),
    ("a.tsx", None, "export const A = <T,>(p: {a: T}) => <b c={p.a as any}>{d}</b>\n"),
    ("a.go", None, "package a\n\nfunc F[T any](x ...T) (n int, err error) { for range 3 { n++ }; return }\n"),
    ("testdata/a.go", None, "package\n"),
    ("a.go", "package\n", "package a {\n"),
    ("a.rs", None, "macro_rules! m { ($a:expr, ~) => { $a }; }\nfn f<'a, T: 'a>(x: &'a T) -> &'a T where T: A { x }\n"),
    ("a.rs", None, "async fn f() -> R { let Some(x) = g().await? else { return Ok(()) }; m![~ x]; Ok(()) }\n"),
    ("table.rs", None, "[\n    (1, f),\n]\n"),  # another file includes it
    ("a.c", "int a;\n", 'MODULE_LICENSE("x")\nstatic INLINE int f(void) FORMAT(1, 2) { FOREACH(a, b) g(); }\n'),
    ("new.c", None, "weird_macro(a) int f() { return 1 }\n"),  # macros may make it valid
    ("a.h", "#ifdef __cplusplus\n#endif\n", "#ifdef __cplusplus\nclass A { public: int a; };\n#endif\n"),
    ("A.java", None, "record A(int a) { int f(Object o) { return switch (o) { case A(var x) when x > 0 -> x; }; } }\n"),
    ("A.java", None, 'class A { String a = """\n  {{ x }}\n  """; @B(c = {1, 2}) <T> void f(T... x) {} }\n'),
    ("templates/A.java", None, "package ${package};\n"),
]  # fmt: skip


def judge(path: str, before: str | None, after: str | bytes) -> evidence.Evidence | None:
    inputs = changes.inputs({} if before is None else {path: before}, {path: after})
    return changes.judge(inputs).get("syntax")


@every("path, before, after, words", [*BROKEN, *PARSED_BY_THE_EXTRA])
def test_a_new_error_is_named_with_its_line(path: str, before: str | None, after: str, words: str) -> None:
    proof = judge(path, before, after)
    assert proof is not None
    assert proof.result == evidence.FAILED
    assert words in proof.output


@every("path, before, after", HONEST)
def test_an_honest_file_passes_or_is_not_judged(path: str, before: str | None, after: str | bytes) -> None:
    proof = judge(path, before, after)
    assert proof is None or proof.passed, proof.output


def test_a_file_whose_parsing_takes_too_long_has_not_passed(monkeypatch: pytest.MonkeyPatch) -> None:
    """S11: some invalid texts take a parser quadratic time."""
    monkeypatch.setattr(source_syntax, "_TIMEOUT", 0.0)
    proof = judge("a.ts", "f()\n", "a<{" * 3_000)
    assert proof is not None
    assert proof.result == evidence.TIMED_OUT


def test_a_broken_file_that_moves_is_not_new() -> None:
    assert changes.judge(changes.inputs({"a.py": "def f(:\n"}, {"b.py": "def f(:\n"})) == {}


def test_all_files_are_judged_and_named() -> None:
    proof = changes.judge(changes.inputs({}, {"a.py": "x = 1\n", "b.json": "{", "c.toml": "x", "d.md": "{"}))["syntax"]
    assert [line.partition(":")[0] for line in proof.output.splitlines()] == ["b.json", "c.toml"]
    proof = changes.judge(changes.inputs({}, {"a.py": "x = 1\n", "b.json": "{}", "c.md": ""}))["syntax"]
    assert (proof.result, proof.output) == (evidence.PASSED, "parsed 2 of the changed files")


@pytest.fixture
def without_extra(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setitem(sys.modules, "tree_sitter", None)
    monkeypatch.setattr(source_syntax, "_bash", str)
    source_syntax._parser.cache_clear()
    yield
    source_syntax._parser.cache_clear()


@pytest.mark.usefixtures("without_extra")
@every("path, before, after", [row[:3] for row in PARSED_BY_THE_EXTRA])
def test_without_the_extra_a_broken_file_passes(path: str, before: str | None, after: str) -> None:
    proof = judge(path, before, after)
    assert proof is None or proof.passed


@pytest.mark.usefixtures("without_extra")
def test_a_file_that_nothing_parses_is_named_with_the_command_that_installs_the_parser() -> None:
    proof = changes.judge(changes.inputs({}, {"a.py": "x = 1\n", "b.go": "package\n", "c.sh": "if\n"}))["syntax"]
    assert proof.output == "parsed 1 of the changed files; nothing here parses b.go, c.sh: pip install 'idumb[syntax]'"


def test_a_script_is_read_and_never_executed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "env").write_text(f"touch {tmp_path}/executed\n", encoding="utf-8")
    monkeypatch.setenv("BASH_ENV", str(tmp_path / "env"))
    assert source_syntax.error(f"touch {tmp_path}/executed\n$(touch {tmp_path}/executed)\n", "a.sh") is None
    assert not (tmp_path / "executed").exists()


def test_the_registry_loads_the_gate_for_every_language_that_it_parses() -> None:
    endings = {ending.lstrip(".") for ending in registry._PARSED}
    assert endings == syntax._PARSERS.keys()
    assert source_syntax.GRAMMARS.keys() | source_syntax.SHELL == syntax._GRAMMARS | syntax._SHELL
