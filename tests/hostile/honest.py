"""Small honest projects, as data: each task does its work, and idumb must not refuse it.

The builder runs the script of its task in the repository. `needs` is the line of configuration without which the
checks cannot run in a clone: idumb must stop and name it, and complete the tasks after the user added it.
"""

# ruff: noqa: E501 - many rows are files and scripts of one line

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple


class Work(NamedTuple):
    """A task: the `files` that the plan declares, what its builder runs, its check, and its class in a strict plan."""

    files: str
    script: str
    check: str
    change: str = "extending"


class Honest(NamedTuple):
    """`before` is what the user did before the run, after the first commit; `tools` are programs that it needs.

    `linked`: the run is in a working tree that `git worktree add` made.
    """

    language: str
    name: str
    files: Mapping[str, str | bytes]
    works: tuple[Work, ...]
    before: str = ""
    tools: tuple[str, ...] = ()
    configuration: str = ""
    needs: str = ""
    linked: bool = False


_PY = "def add(a, b):\n    return a + b\n"
_TODO = "def add(a, b):\n    raise NotImplementedError\n"
_PYTEST = "from calc import add\n\n\ndef test_add():\n    assert add(2, 40) == 42\n"
_CONF = "[tool.pytest.ini_options]\npythonpath = ['.']\n"
_IGNORE = (
    "__pycache__/\n.pytest_cache/\nbuild/\n.venv/\nnode_modules/\n.env\nout/\ntarget/\ndist/\n.coverage\nsite/\n*.o\n"
)
_ADD = f"printf '%s' '{_PY}' > calc.py"
_COMMIT = "git -c user.name=u -c user.email=u@x commit -q"


def _python(extra: Mapping[str, str | bytes] | None = None, test: str = _PYTEST) -> dict[str, str | bytes]:
    return {"calc.py": _TODO, "test_calc.py": test, "pyproject.toml": _CONF, ".gitignore": _IGNORE, **(extra or {})}


def _calc(check: str = "pytest -q", script: str = _ADD, more: str = "", change: str = "extending") -> tuple[Work, ...]:
    return (Work(f"modify `calc.py`{more}", script, check, change),)


_IMPORTS = "import json, os, pathlib, subprocess, tempfile\nfrom calc import add\n\n\n"


def _test(body: str) -> str:
    lines = "".join(f"    {line}\n" for line in ("assert add(2, 40) == 42", *body.split("\n")))
    return f"{_IMPORTS}def test_add(tmp_path):\n{lines}"


_JS = "exports.add = (a, b) => a + b\n"
_JS_TODO = "exports.add = () => { throw new Error('to do') }\n"
_JS_TEST = "const { test } = require('node:test')\nconst assert = require('node:assert')\ntest('adds', () => assert.strictEqual(require('./calc').add(2, 40), 42))\n"
_SCRIPTS = '{"name": "calc", "version": "1.0.0", "private": true, "scripts": {"test": "node --test", "build": "mkdir -p dist && cp calc.js dist/"}}\n'
_LOCK = '{"name": "calc", "version": "1.0.0", "lockfileVersion": 3, "requires": true, "packages": {"": {"name": "calc", "version": "1.0.0"}}}\n'
_MOCHA = "const assert = require('assert')\ndescribe('add', () => it('adds', () => assert.strictEqual(require('../calc').add(2, 40), 42)))\n"
_JEST = "test('adds', () => expect(require('./calc').add(2, 40)).toBe(42))\n"


def _node(extra: Mapping[str, str | bytes] | None = None) -> dict[str, str | bytes]:
    return {
        "calc.js": _JS_TODO,
        "calc.test.js": _JS_TEST,
        "package.json": _SCRIPTS,
        ".gitignore": _IGNORE,
        **(extra or {}),
    }


def _js(check: str = "npm test", more: str = "") -> tuple[Work, ...]:
    return (Work(f"modify `calc.js`{more}", f"printf '%s' '{_JS}' > calc.js", check),)


_GO_TEST = 'package calc\n\nimport "testing"\n\nfunc TestAdd(t *testing.T) {\n\tif Add(2, 40) != 42 {\n\t\tt.Fatal("wrong")\n\t}\n}\n'
_GO = "package calc\n\nfunc Add(a, b int) int { return a + b }\n"


def _go(extra: Mapping[str, str | bytes] | None = None) -> dict[str, str | bytes]:
    todo = 'package calc\n\nfunc Add(a, b int) int { panic("to do") }\n'
    return {
        "calc.go": todo,
        "calc_test.go": _GO_TEST,
        "go.mod": "module calc\n\ngo 1.19\n",
        ".gitignore": _IGNORE,
        **(extra or {}),
    }


_CARGO = '[package]\nname = "calc"\nversion = "1.0.0"\nedition = "2021"\n'
_RUST = "pub fn add(a: i32, b: i32) -> i32 { a + b }\n"


def _rust(extra: Mapping[str, str | bytes] | None = None) -> dict[str, str | bytes]:
    test = "#[test]\nfn adds() { assert_eq!(calc::add(2, 40), 42); }\n"
    return {
        "src/lib.rs": "pub fn add(_: i32, _: i32) -> i32 { todo!() }\n",
        "tests/calc.rs": test,
        "Cargo.toml": _CARGO,
        ".gitignore": _IGNORE,
        **(extra or {}),
    }


_C = '#include <stdio.h>\n#include <stdlib.h>\nint main(int c, char **v) { printf("%d\\n", atoi(v[1]) + atoi(v[2])); return 0; }\n'
_C_TODO = "int main(void) { return 1; }\n"
_MAKE = 'build/calc: calc.c\n\tmkdir -p build\n\tcc -Wall -o $@ calc.c\n\ntest: build/calc\n\ttest "$$(build/calc 2 40)" = 42\n'
_C_DONE = f"cat > calc.c <<'X'\n{_C}X\n"
_JAVA = "public class Calc {\n    static int add(int a, int b) { return a + b; }\n    public static void main(String[] a) { if (add(2, 40) != 42) System.exit(1); }\n}\n"
_JAVA_DONE = f"cat > Calc.java <<'X'\n{_JAVA}X\n"

HONEST: tuple[Honest, ...] = (
    # Python
    Honest("Python", "pytest", _python(), _calc()),
    Honest("Python", "unittest", {"calc.py": _TODO, "test_calc.py": "import unittest, calc\n\n\nclass T(unittest.TestCase):\n    def test(self):\n        self.assertEqual(calc.add(2, 40), 42)\n"}, _calc("python3 -m unittest -q")),
    Honest("Python", "no ignore rules, and the builder ran pytest", {"calc.py": _TODO, "test_calc.py": _PYTEST, "pyproject.toml": _CONF}, _calc(script=f"{_ADD}; pytest -q")),
    Honest("Python", "tests and code by two tasks", {"calc.py": _TODO, "pyproject.toml": _CONF, ".gitignore": _IGNORE}, (
        Work("create `test_calc.py`", f"cat > test_calc.py <<'X'\n{_PYTEST}X\n", "grep -q 'add(2, 40) == 42' test_calc.py"),
        Work("modify `calc.py`", _ADD, "pytest -q"))),
    Honest("Python", "a test that writes into its own folder", _python(test=_test("pathlib.Path('out').mkdir(exist_ok=True)\npathlib.Path('out/report.json').write_text(json.dumps([1]))")), _calc()),
    Honest("Python", "a test that writes a file that git does not ignore", _python(test=_test("pathlib.Path('result.txt').write_text('done')")), _calc()),
    Honest("Python", "a test that rewrites a committed file with the same bytes", _python({"data.json": "[1]"}, _test("pathlib.Path('data.json').write_text('[1]')")), _calc()),
    Honest("Python", "a fixture in a folder that the test removes", _python(test=_test("import shutil\nos.makedirs('work')\nshutil.rmtree('work')")), _calc()),
    Honest("Python", "a snapshot test", _python(test=_test("assert pathlib.Path('snapshots/add.txt').read_text() == str(add(2, 40))")), _calc(script=f"{_ADD}; mkdir snapshots; printf 42 > snapshots/add.txt", more=", create `snapshots/add.txt`")),
    Honest("Python", "pytest in parallel", _python(), _calc("pytest -q -n 2")),
    Honest("Python", "coverage", _python(), _calc("coverage run -m pytest -q && coverage report --fail-under=80"), tools=("coverage",)),
    Honest("Python", "pytest with coverage and a report", _python(), _calc("pytest -q --cov=calc --cov-report=xml --junitxml=report.xml && test -s report.xml"), tools=("coverage",)),
    Honest("Python", "ruff", _python(), _calc("ruff check . && ruff format --check calc.py && pytest -q"), tools=("ruff",)),
    Honest("Python", "mypy", _python(), _calc("mypy --strict calc.py", script="printf 'def add(a: int, b: int) -> int:\\n    return a + b\\n' > calc.py"), tools=("mypy",)),
    Honest("Python", "hypothesis", _python(test="from hypothesis import given, strategies as s\nfrom calc import add\n\n\n@given(s.integers(), s.integers())\ndef test_add(a, b):\n    assert add(a, b) == a + b\n"), _calc()),
    Honest("Python", "doctest", {"calc.py": _TODO}, _calc("python3 -m doctest -v calc.py | grep -q '1 passed'", script="printf 'def add(a, b):\\n    \"\"\"\\n    >>> add(2, 40)\\n    42\\n    \"\"\"\\n    return a + b\\n' > calc.py")),
    Honest("Python", "a package in src", {"src/calc/__init__.py": "", "tests/test_calc.py": "from calc.sums import add\n\n\ndef test_add():\n    assert add(2, 40) == 42\n"}, (Work("create `src/calc/sums.py`", f"printf '%s' '{_PY}' > src/calc/sums.py", "PYTHONPATH=src pytest -q"),)),
    Honest("Python", "a version from git describe", _python(test=_test("found = subprocess.run(['git', 'describe', '--tags'], capture_output=True, text=True, check=True).stdout\nassert found.startswith('v1.0')")), _calc(), before="git tag v1.0"),
    Honest("Python", "a test that reads git log", _python(test=_test("assert subprocess.run(['git', 'log', '-1', '--format=%s'], capture_output=True, text=True, check=True).stdout.strip()")), _calc()),
    Honest("Python", "a test that commits", _python(test=_test("subprocess.run('git init -q . && touch a && git add a && git commit -qm a', shell=True, cwd=tmp_path, check=True)")), _calc(), before="git config --global user.name u; git config --global user.email u@x"),
    Honest("Python", "a test that needs HOME", _python(test=_test("rc = pathlib.Path.home() / '.calcrc'\nrc.write_text('x')\nassert rc.read_text() == 'x'")), _calc()),
    Honest("Python", "a test that needs TMPDIR", _python(test=_test("assert pathlib.Path(os.environ['TMPDIR']).is_dir()\ntempfile.NamedTemporaryFile().close()")), _calc()),
    Honest("Python", "a generated version file", _python({"generate.py": "open('_version.py', 'w').write('version = 1\\n')\n", ".gitignore": f"{_IGNORE}_version.py\n"}, _test("from _version import version\nassert version == 1")), _calc("python3 generate.py && pytest -q")),
    Honest("Python", "an ignored .env", _python({"conftest.py": "import os\n\nfor line in open('.env'):\n    os.environ.setdefault(*line.strip().split('='))\n"}, _test("assert os.environ['SERVICE'] == 'local'")), _calc(), before="echo SERVICE=local > .env", needs="checkout: {provide: [.env]}"),
    Honest("Python", "a virtual environment", {"calc.py": _TODO, "test_calc.py": "import unittest, calc, dep\n\n\nclass T(unittest.TestCase):\n    def test(self):\n        self.assertEqual(calc.add(2, 40), dep.answer)\n", ".gitignore": _IGNORE}, _calc(".venv/bin/python -m unittest -q"), before="/usr/bin/python3 -m venv --without-pip .venv && echo 'answer = 42' > $(echo .venv/lib/python3*/site-packages)/dep.py", needs="checkout: {provide: [.venv]}"),
    Honest("Python", "an editable install", {"src/calc.py": _TODO, "test_calc.py": "import unittest, calc\n\n\nclass T(unittest.TestCase):\n    def test(self):\n        self.assertEqual(calc.add(2, 40), 42)\n", ".gitignore": _IGNORE}, (Work("modify `src/calc.py`", f"printf '%s' '{_PY}' > src/calc.py", ".venv/bin/python -m unittest -q"),), before="/usr/bin/python3 -m venv --without-pip .venv && echo $PWD/src > $(echo .venv/lib/python3*/site-packages)/calc.pth", configuration="checkout: {provide: [.venv]}\n"),
    Honest("Python", "a server on loopback", _python(test=_test("import http.server, threading, urllib.request\nserver = http.server.HTTPServer(('127.0.0.1', 0), http.server.SimpleHTTPRequestHandler)\nthreading.Thread(target=server.serve_forever, daemon=True).start()\nassert b'raise' not in urllib.request.urlopen(f'http://127.0.0.1:{server.server_port}/calc.py').read()\nserver.shutdown()")), _calc()),
    Honest("Python", "long output", _python(), _calc("python3 -c 'import calc; print(\"x\" * 79 + \"\\n\", end=\"\"); [print(\"line\", i, calc.add(i, 1)) for i in range(200000)]' && pytest -q")),
    Honest("Python", "many tests, verbose", _python(test="import pytest\nfrom calc import add\n\n\n@pytest.mark.parametrize('n', range(500))\ndef test_add(n):\n    assert add(n, 1) == n + 1\n"), _calc("pytest -v")),
    Honest("Python", "processes of a test", _python(test="import multiprocessing\nfrom calc import add\n\n\ndef test_add():\n    with multiprocessing.get_context('spawn').Pool(2) as pool:\n        assert pool.starmap(add, [(2, 40), (1, 1)]) == [42, 2]\n"), _calc()),
    Honest("Python", "a database", _python(test=_test("import sqlite3\nwith sqlite3.connect('app.db') as db:\n    db.execute('create table t (a)')")), _calc()),
    Honest("Python", "names beyond ASCII", _python({"données/été.txt": "42"}, _test("assert pathlib.Path('données/été.txt').read_text() == '42'\nassert pathlib.Path('日本語.txt').read_text() == 'x'")), _calc(script=f"{_ADD}; printf x > 日本語.txt", more=", create `日本語.txt`")),
    Honest("Python", "names with spaces and quotes", _python(test=_test("assert pathlib.Path('a b/it\\'s.txt').read_text() == 'x'")), _calc(script=f"{_ADD}; mkdir 'a b'; printf x > \"a b/it's.txt\"", more=", create `a b/it's.txt`")),
    Honest("Python", "files with CRLF", _python({"data.csv": b"a,b\r\n1,2\r\n", ".gitattributes": "*.bat text eol=crlf\n"}, _test("assert pathlib.Path('data.csv').read_bytes() == b'a,b\\r\\n1,2\\r\\n'\nassert pathlib.Path('new.csv').read_bytes() == b'a\\r\\n'")), _calc(script=f"{_ADD}; printf 'a\\r\\n' > new.csv", more=", create `new.csv`")),
    Honest("Python", "symbolic links", _python({"data/v1/x.txt": "one"}, _test("assert pathlib.Path('data/latest/x.txt').read_text() == 'one'")), _calc(script=f"{_ADD}; ln -s v1 data/latest", more=", create `data/latest`")),
    Honest("Python", "a binary file", _python(test=_test("assert len(pathlib.Path('image.bin').read_bytes()) == 300000")), _calc(script=f"{_ADD}; python3 -c 'import sys; sys.stdout.buffer.write(bytes(range(250)) * 1200)' > image.bin", more=", create `image.bin`")),
    Honest("Python", "deleted and renamed files", _python({"old.py": "x = 1\n", "gone.txt": "x"}, _test("assert not pathlib.Path('gone.txt').exists()\nfrom new import x")), _calc(script=f"{_ADD}; git mv old.py new.py; rm gone.txt", more=", delete `old.py`, create `new.py`, delete `gone.txt`", change="breaking")),
    Honest("Python", "a folder of a monorepo", {"packages/a/calc.py": _TODO, "packages/a/test_calc.py": _PYTEST, "packages/b/other.py": "x = 1\n"}, (Work("modify `packages/a/calc.py`", f"printf '%s' '{_PY}' > packages/a/calc.py", "cd packages/a && pytest -q"),)),
    Honest("Python", "a submodule", _python(test="import sys\nsys.path.insert(0, 'lib')\nfrom inner import answer\nfrom calc import add\n\n\ndef test_add():\n    assert add(2, 40) == answer\n"), _calc("pytest -q test_calc.py"), before=f"git init -q ../lib && echo 'answer = 42' > ../lib/inner.py && git -C ../lib add . && git -C ../lib -c user.name=u -c user.email=u@x commit -qm lib && git -c protocol.file.allow=always submodule add -q $PWD/../lib lib && {_COMMIT} -m 'add lib'"),
    Honest("Python", "a hook that reformats", _python(), _calc(script=f"{_ADD}; echo 'x = 1   ' >> calc.py"), before="mkdir -p .git/hooks; printf '#!/bin/sh\\nsed -i \"s/ *$//\" calc.py\\ngit add calc.py\\n' > .git/hooks/pre-commit; chmod +x .git/hooks/pre-commit"),
    Honest("Python", "a hook that only looks", _python(), _calc(), before="mkdir -p .git/hooks; printf '#!/bin/sh\\ngit diff --cached --check -- calc.py\\n' > .git/hooks/pre-commit; chmod +x .git/hooks/pre-commit"),
    Honest("Python", "a formatter and git diff", _python(), _calc("ruff format calc.py && git diff --exit-code && git ls-files | grep -q calc.py && pytest -q"), tools=("ruff",)),
    Honest("Python", "an uncommitted change of the user elsewhere", _python({"notes.txt": "one\n"}), _calc(), before="echo two >> notes.txt; echo mine > untracked.txt"),
    Honest("Python", "a detached HEAD", _python(), _calc(), before="git checkout -q --detach"),
    Honest("Python", "another work tree", _python(), _calc("pytest -q && git rev-parse --is-inside-work-tree"), linked=True),
    Honest("Python", "a shallow clone", _python(test=_test("assert subprocess.run(['git', 'rev-parse', 'HEAD'], check=True)")), _calc(), before="echo x > x.txt; git add x.txt; " + _COMMIT + " -m more; git rev-parse HEAD > .git/shallow"),
    Honest("Python", "a program that is executable", {"README.md": "x\n"}, (Work("create `bin/tool`", "mkdir bin; printf '#!/bin/sh\\necho 42\\n' > bin/tool; chmod +x bin/tool", 'test "$(./bin/tool)" = 42'),)),
    Honest("Python", "a zipped application", {"app/calc.py": _TODO, ".gitignore": _IGNORE}, (Work("modify `app/calc.py`, create `app/__main__.py`", f"printf '%s' '{_PY}' > app/calc.py; echo 'import calc; print(calc.add(2, 40))' > app/__main__.py", 'python3 -m zipapp app -o app.pyz && test "$(python3 app.pyz)" = 42'),)),
    Honest("Python", "an output of an earlier task's check", {"README.md": "x\n", ".gitignore": _IGNORE}, (
        Work("create `make.sh`", "echo 'mkdir -p build; echo 42 > build/answer' > make.sh", "sh make.sh && test -s build/answer"),
        Work("create `use.sh`", "echo 'cat build/answer' > use.sh", 'test "$(sh use.sh)" = 42')), configuration="checkout: {cache: ['build/**']}\n"),
    # JavaScript
    Honest("JavaScript", "node --test", _node(), _js("node --test"), tools=("node",)),
    Honest("JavaScript", "npm test", _node(), _js(), tools=("npm",)),
    Honest("JavaScript", "npm ci, build and test", _node({"package-lock.json": _LOCK}), _js("npm ci --offline --no-audit && npm run build && npm test && test -s dist/calc.js"), tools=("npm",)),
    Honest("JavaScript", "an installed package", _node({"calc.test.js": _JS_TEST.replace("42)", "require('answer'))")}), _js(), before="mkdir -p node_modules/answer; echo 'module.exports = 42' > node_modules/answer/index.js", tools=("npm",), needs="checkout: {provide: [node_modules]}"),
    Honest("JavaScript", "packages of a workspace", {"package.json": '{"name": "all", "private": true, "workspaces": ["packages/*"]}\n', "packages/calc/package.json": '{"name": "calc", "main": "index.js"}\n', "packages/calc/index.js": _JS_TODO, "packages/app/app.test.js": _JS_TEST.replace("./calc", "calc"), ".gitignore": _IGNORE}, (Work("modify `packages/calc/index.js`", f"printf '%s' '{_JS}' > packages/calc/index.js", "node --test packages/app"),), before="mkdir node_modules; ln -s ../packages/calc node_modules/calc", configuration="checkout: {provide: [node_modules]}\n", tools=("node",)),
    Honest("JavaScript", "ES modules", {"package.json": '{"name": "calc", "type": "module", "scripts": {"test": "node --test"}}\n', "calc.js": "export const add = () => 0\n", "calc.test.js": "import { test } from 'node:test'\nimport assert from 'node:assert'\nimport { add } from './calc.js'\ntest('adds', () => assert.strictEqual(add(2, 40), 42))\n"}, (Work("modify `calc.js`", "echo 'export const add = (a, b) => a + b' > calc.js", "npm test"),), tools=("npm",)),
    Honest("JavaScript", "mocha", _node({"test/calc.js": _MOCHA}), _js("mocha"), tools=("mocha",)),
    Honest("JavaScript", "jest", _node({"calc.test.js": _JEST}), _js("jest"), tools=("jest",)),
    Honest("JavaScript", "jest with a snapshot", _node({"calc.test.js": _JEST.replace("toBe(42)", "toMatchSnapshot()"), "__snapshots__/calc.test.js.snap": "// Jest Snapshot v1, https://jestjs.io/docs/snapshot-testing\n\nexports[`adds 1`] = `42`;\n"}), _js("jest --ci"), tools=("jest",)),
    Honest("JavaScript", "TypeScript", {"package.json": '{"name": "calc"}\n', "calc.ts": "export const add = (a: number, b: number): number => { throw 1 }\n", "check.js": "if (require('./dist/calc.js').add(2, 40) !== 42) process.exit(1)\n", "tsconfig.json": '{"compilerOptions": {"outDir": "dist", "module": "commonjs", "strict": true, "types": [], "target": "es2022", "rootDir": "."}, "files": ["calc.ts"], "incremental": true}\n'.replace(', "incremental": true', ""), ".gitignore": _IGNORE}, (Work("modify `calc.ts`", "echo 'export const add = (a: number, b: number): number => a + b' > calc.ts", "tsc && node check.js"),), tools=("tsc", "node")),
    # Go
    Honest("Go", "go test", _go(), (Work("modify `calc.go`", f"printf '%s' '{_GO}' > calc.go", "go test ./..."),), tools=("go",)),
    Honest("Go", "go vet, build and a program", _go({"cmd/main.go": 'package main\n\nimport "calc"\n\nfunc main() { println(calc.Add(2, 40)) }\n'}), (Work("modify `calc.go`", f"printf '%s' '{_GO}' > calc.go", 'go vet ./... && mkdir -p build && go build -o build/ ./cmd && test "$(build/cmd 2>&1)" = 42'),), tools=("go",)),
    Honest("Go", "golden files", _go({"calc_test.go": 'package calc\n\nimport (\n\t"fmt"\n\t"os"\n\t"testing"\n)\n\nfunc TestAdd(t *testing.T) {\n\twant, _ := os.ReadFile("testdata/add.golden")\n\tif fmt.Sprint(Add(2, 40)) != string(want) {\n\t\tt.Fatal("wrong")\n\t}\n}\n'}), (Work("modify `calc.go`, create `testdata/add.golden`", f"printf '%s' '{_GO}' > calc.go; mkdir testdata; printf 42 > testdata/add.golden", "go test ./..."),), tools=("go",)),
    # Rust
    Honest("Rust", "cargo test", _rust(), (Work("modify `src/lib.rs`", f"printf '%s' '{_RUST}' > src/lib.rs", "cargo test --offline"),), tools=("cargo",)),
    Honest("Rust", "a program with a lock file, in two tasks", _rust({"src/main.rs": 'fn main() { println!("{}", calc::add(2, 40)); }\n', "Cargo.lock": '# This file is automatically @generated by Cargo.\n# It is not intended for manual editing.\nversion = 3\n\n[[package]]\nname = "calc"\nversion = "1.0.0"\n'}), (
        Work("modify `src/lib.rs`", f"printf '%s' '{_RUST}' > src/lib.rs", 'test "$(cargo run --offline --locked -q)" = 42'),
        Work("modify `src/main.rs`", "echo '// done' >> src/main.rs", 'grep -q done src/main.rs && test "$(cargo run --offline --locked -q)" = 42')), configuration="checkout: {cache: ['target/**']}\n", tools=("cargo",)),
    Honest("Rust", "a workspace", {"Cargo.toml": '[workspace]\nmembers = ["calc", "app"]\nresolver = "2"\n', "calc/Cargo.toml": _CARGO, "calc/src/lib.rs": "pub fn add(_: i32, _: i32) -> i32 { todo!() }\n", "app/Cargo.toml": _CARGO.replace('"calc"', '"app"') + '[dependencies]\ncalc = { path = "../calc" }\n', "app/src/lib.rs": "#[test]\nfn adds() { assert_eq!(calc::add(2, 40), 42); }\n", ".gitignore": _IGNORE + "Cargo.lock\n"}, (Work("modify `calc/src/lib.rs`", f"printf '%s' '{_RUST}' > calc/src/lib.rs", "cargo test --offline -p app"),), tools=("cargo",)),
    # C
    Honest("C", "make test", {"calc.c": _C_TODO, "Makefile": _MAKE, ".gitignore": _IGNORE}, (Work("modify `calc.c`", _C_DONE, "make test"),), tools=("make", "cc")),
    Honest("C", "an incremental Makefile, in two tasks", {"calc.c": _C_TODO, "Makefile": _MAKE, ".gitignore": _IGNORE}, (
        Work("modify `calc.c`", _C_DONE, "make test"),
        Work("modify `calc.c`", "echo '/* done */' >> calc.c", 'make build/calc && grep -q done calc.c && test "$(build/calc 2 40)" = 42')), configuration="checkout: {cache: ['build/**']}\n", tools=("make", "cc")),
    Honest("C", "headers and objects", {"main.c": '#include "add.h"\nint main(void) { return add(2, 40) != 42; }\n', "Makefile": "test: main.o add.o\n\tcc -o prog main.o add.o\n\t./prog\n", ".gitignore": "*.o\nprog\n"}, (Work("create `add.c`, create `add.h`", "echo 'int add(int, int);' > add.h; echo 'int add(int a, int b) { return a + b; }' > add.c", "make test"),), tools=("make", "cc")),
    Honest("C", "cmake and ctest", {"calc.c": _C_TODO, "CMakeLists.txt": 'cmake_minimum_required(VERSION 3.10)\nproject(calc C)\nenable_testing()\nadd_executable(calc calc.c)\nadd_test(NAME adds COMMAND calc 2 40)\nset_tests_properties(adds PROPERTIES PASS_REGULAR_EXPRESSION "^42\\n")\n', ".gitignore": _IGNORE}, (Work("modify `calc.c`", _C_DONE, "cmake -S . -B build && cmake --build build && ctest --test-dir build --output-on-failure"),), tools=("cmake", "cc")),
    # Java
    Honest("Java", "javac and a main class", {"Calc.java": "public class Calc {}\n", ".gitignore": "*.class\n"}, (Work("modify `Calc.java`", _JAVA_DONE, "javac Calc.java && java Calc"),), tools=("javac",)),
    Honest("Java", "a jar with a resource", {"Calc.java": "public class Calc {}\n", "answer.txt": "42\n", ".gitignore": _IGNORE}, (Work("modify `Calc.java`", _JAVA_DONE, "mkdir -p build && javac -d build Calc.java && cp answer.txt build && jar cfe build/calc.jar Calc -C build . && java -jar build/calc.jar"),), tools=("javac", "jar")),
    Honest("Java", "Maven without network", {"pom.xml": '<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion><groupId>g</groupId><artifactId>calc</artifactId><version>1</version></project>\n', ".gitignore": _IGNORE}, (Work("create `Calc.java`", _JAVA_DONE, "mvn --offline --quiet --batch-mode validate && test -s Calc.java"),), tools=("mvn",)),
    # Documents and shell
    Honest("docs", "links that lead somewhere", {"index.md": "# Index\n", "links.py": "import re, pathlib\nfor link in re.findall(r'\\]\\((\\S+)\\)', pathlib.Path('index.md').read_text()):\n    assert pathlib.Path(link).is_file(), link\nassert '](guide.md)' in pathlib.Path('index.md').read_text()\n"}, (Work("modify `index.md`, create `guide.md`", "echo '[guide](guide.md)' >> index.md; echo '# Guide' > guide.md", "python3 links.py"),)),
    Honest("docs", "mkdocs", {"mkdocs.yml": "site_name: x\n", "docs/index.md": "# Index\n", ".gitignore": _IGNORE}, (Work("create `docs/guide.md`", "echo '# Guide' > docs/guide.md", "mkdocs build --strict && test -s site/guide/index.html"),), tools=("mkdocs",)),
    Honest("docs", "Sphinx", {"conf.py": "project = 'x'\n", "index.rst": "Index\n=====\n\n.. toctree::\n\n   guide\n", ".gitignore": _IGNORE}, (Work("create `guide.rst`", "printf 'Guide\\n=====\\n' > guide.rst", "sphinx-build -W -q -b html . build/html && test -s build/html/guide.html"),), tools=("sphinx-build",)),
    Honest("docs", "mdformat", {"index.md": "# Index\n"}, (Work("create `guide.md`", "printf '# Guide\\n\\n- one\\n- two\\n' > guide.md", "mdformat --check guide.md"),), tools=("mdformat",)),
    Honest("shell", "a script and its test", {"test.sh": 'set -eu\ntest "$(sh add.sh 2 40)" = 42\necho ok\n'}, (Work("create `add.sh`", "echo 'echo $(($1 + $2))' > add.sh", "sh -n add.sh && sh test.sh"),)),
    Honest("shell", "bash with pipefail", {"README.md": "x\n"}, (Work("create `list.txt`", "seq 5 > list.txt", "bash -c 'set -euo pipefail; sort -n list.txt | tail -n 1 | grep -qx 5'"),), tools=("bash",)),
    Honest("shell", "a file that git LFS keeps", {".gitattributes": "*.bin filter=lfs diff=lfs merge=lfs -text\n"}, (Work("create `a.bin`", "printf data > a.bin", 'test "$(cat a.bin)" = data'),), before="git lfs install --local", tools=("git-lfs",)),
)  # fmt: skip
