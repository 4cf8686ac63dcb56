"""The gate `change-class`: the class that public names show, in five languages (R-GATE-4)."""

from __future__ import annotations

import functools

from idumb.domain.plans.plan import Task
from idumb.domain.proof import evidence
from idumb.domain.proof.evidence import Evidence
from idumb.domain.proof.gate import Inputs
from idumb.gates import change_class
from tests.support import changes
from tests.support.cases import every
from tests.support.growth import assert_linear

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
TS = """\
import { other } from './other'

export function load(path: string, strict = false): string {
  return path
}

export const save = async (path: string, data?: { a: string, b: number }) => {
  return 1
}

function inner(path: string) {
  return path
}

export class Store {
  private size = 1
  constructor(readonly path: string) {}
  get(name: string): string {
    if (name) { return name }
    return ''
  }
}

export interface Shape {
  width: number
  height?: number
}
"""
JS = "function load(path) {\n  return path\n}\n\nmodule.exports = { load, other: 1 }\n"
GO = """\
package web

// Load loads.
func Load(path string, strict bool) (string, error) {
\treturn path, nil
}

func inner(path string) {}

type Store struct {
\tName string `json:"name"`
\tsize int
}

func (s *Store) Get(name string) string {
\treturn name
}

type Reader interface {
\tRead(p []byte) (int, error)
}
"""
RUST = """\
pub struct Config {
    pub name: String,
    size: u8,
}

impl<T> Reader<T> for Config {
    fn read(&self) -> u8 { 1 }
}

impl Config {
    pub fn load<'a>(path: &'a str, strict: bool) -> Result<Self, Error> {
        Ok(path)
    }

    fn inner(&self) {}
}

pub(crate) fn hidden() {}
"""
JAVA = """\
package a;

public class Config {
    private int size;

    public static Config load(final String path, boolean strict) {
        return null;
    }

    protected void close() {}

    void inner() {}
}
"""
HEADER = """\
#ifndef A_H
#define A_H
#define LIMIT 3
struct config {
    int size;
};
/* Loads. */
char *load(const char *path, int strict);
extern void save(void);
#endif
"""
C = "static int inner(int x) {\n    return x;\n}\n\nint load(const char *path)\n{\n    return inner(1);\n}\n"
SHELL = "load() {\n  echo 1\n}\n\nload\n"
FILES = {
    "src/a.h": HEADER,
    "src/a.c": C,
    "bin.sh": SHELL,
    "src/a.py": PY,
    "src/a.ts": TS,
    "src/a.js": JS,
    "web/a.go": GO,
    "src/a.rs": RUST,
    "src/Config.java": JAVA,
}


def judge(declared: str, path: str, after: str, before: str | None = None) -> Evidence:
    texts = {path: FILES[path] if before is None else before}
    inputs = changes.inputs(texts, {path: after} if after else {}, task=Task("T1-01", "A task", change=declared))
    return changes.judge(inputs)["change-class"]


def edited(path: str, *edits: tuple[str, str]) -> str:
    text = FILES[path]
    for old, new in edits:
        assert old in text
        text = text.replace(old, new, 1)
    return text


BROKEN = [
    ("preserving", "src/a.py", (("LIMIT = 3", "LIMIT = 3\nMOST = 4"),), "MOST was added: the change is extending"),
    ("extending", "src/a.py", (("strict=False", "strict=True"),), "load has another default of strict"),
    ("modifying", "src/a.py", (("path, strict=False", "path"),), "load no longer takes strict: the change is b"),
    ("modifying", "src/a.py", (("    def read", "    def get"),), "Config.read was removed"),
    ("extending", "src/a.py", (("name):", "name, size):"),), "Config.read now requires size"),
    ("extending", "src/a.py", (("self.size", "self._size"),), "Config.size was removed"),
    ("modifying", "src/a.py", (("    def read(self, name)", "    @property\n    def read(self)"),), "is a property"),
    ("preserving", "src/a.py", (("strict=False", "strict=False, *, again=None"),), "load takes a new again"),
    ("preserving", "src/a.ts", (("interface Shape", "type Id = string\nexport interface Shape"),), "Id was added"),
    ("modifying", "src/a.ts", (("strict = false", "strict: boolean"),), "load now requires parameter 2"),
    ("modifying", "src/a.ts", (("export function load", "function load"),), "load was removed"),
    ("extending", "src/a.ts", (("data?: {", "more: string, data?: {"),), "save now requires parameter 2"),
    ("modifying", "src/a.ts", (("  get(name", "  read(name"),), "Store.get was removed"),
    ("modifying", "src/a.ts", (("  width: number\n", ""),), "Shape.width was removed"),
    ("modifying", "src/a.js", (("load, other", "other"),), "load was removed"),
    ("extending", "web/a.go", (("strict bool", "strict string"),), "Load has another type of parameter 2"),
    ("modifying", "web/a.go", (("(string, error) {", "string {"),), "Load has another result"),
    ("modifying", "web/a.go", (("Name string", "Title string"),), "Store.Name was removed"),
    ("preserving", "web/a.go", (("func inner", "func (s *Store) Put() {}\n\nfunc inner"),), "Store.Put was added"),
    ("modifying", "src/a.rs", (("strict: bool", "strict: u8"),), "Config.load has another type of parameter 2"),
    ("modifying", "src/a.rs", (("pub name", "name"),), "Config.name was removed"),
    ("modifying", "src/a.h", (("int strict", "long strict"),), "load has another type of parameter 2"),
    ("modifying", "src/a.h", (("extern void save(void);\n", ""),), "save was removed"),
    ("preserving", "src/a.h", (("#endif", "int more(int x);\n#endif"),), "more was added"),
    ("modifying", "src/a.h", (("#define LIMIT 3\n", ""),), "LIMIT was removed"),
    ("modifying", "src/Config.java", (("boolean strict", "int strict"),), "load(String, boolean) was removed"),
    ("modifying", "web/a.go", (("(path string, strict bool)", "(path string)"),), "Load takes 1 instead of 2 param"),
    ("modifying", "web/a.go", (("(path string", "(path *string"),), "Load has another type of parameter 1"),
    ("modifying", "src/a.ts", (("private size = 1", "size =\n    1"), ("  get(n", "  b(n")), "Store.get was removed"),
    ("modifying", "src/Config.java", (("protected void", "protected int"),), "close() has another type"),
]  # fmt: skip


@every("declared, path, edits, words", BROKEN)
def test_a_higher_class_than_declared_is_named(
    declared: str, path: str, edits: tuple[tuple[str, str], ...], words: str
) -> None:
    """R-GATE-4. Without a declared class, the same change is not judged."""
    proof = judge(declared, path, edited(path, *edits))
    assert proof.result == evidence.FAILED
    assert words in proof.output
    assert f"and T1-01 declares {declared}" in proof.output
    assert "change-class" not in changes.judge(changes.inputs({path: FILES[path]}, {path: edited(path, *edits)}))


HONEST = [
    ("preserving", "src/a.py", (("    return path\n", "    return os.fspath(path)\n"), ("_private(path)", "_other()"))),
    ("preserving", "src/a.py", (("Config(object)", "Config"), ("import os\n", "import os\nimport re\n"))),
    ("extending", "src/a.py", (("strict=False", "strict=False, *, again=None"), ("LIMIT = 3", "LIMIT = 4"))),
    ("breaking", "src/a.py", (("def load", "def read"),)),
    ("preserving", "src/a.ts", (("  return path\n}\n\nexport", "  return '('\n}\n\nexport"), ("inner(path", "deep(p"))),
    ("preserving", "src/a.ts", (("private size = 1", "private width = 1"), ("path: string, s", "p: string, s"))),
    ("preserving", "src/a.ts", (("export class", "// export function other() {}\nexport class"),)),
    ("extending", "src/a.ts", (("strict = false", "strict = false, again?: number"),)),
    ("preserving", "src/a.js", (("return path", "return path + 1"),)),
    ("preserving", "web/a.go", (("path string, strict bool", "p string, s bool"), ("size int", "length int"))),
    ("preserving", "web/a.go", (("(string, error)", "(s string, err error)"), ("func inner(path", "func deep(p"))),
    ("extending", "web/a.go", (("size int", "Size int"),)),
    ("preserving", "src/a.rs", (("size: u8", "length: u16"), ("fn inner", "fn deep"), ("Ok(path)", "Err(1)"))),
    ("preserving", "src/a.h", (("path, int strict", "p, int s"), ("A_H", "B_H"), ("A_H", "B_H"), ("Loads", "It l"))),
    ("preserving", "src/a.c", (("static int inner(int x)", "static int inner(long x)"), ("inner(1)", "inner(2)"))),
    ("preserving", "bin.sh", (("echo 1", "echo 2"),)),
    ("preserving", "src/Config.java", (("return null", "return new Config()"), ("final String path", "String p"))),
]  # fmt: skip


@every("declared, path, edits", HONEST)
def test_an_honest_change_passes(declared: str, path: str, edits: tuple[tuple[str, str], ...]) -> None:
    proof = judge(declared, path, edited(path, *edits))
    assert (proof.result, proof.output.partition(";")[0]) == (evidence.PASSED, f"declared {declared}")


RESPELLED = [
    ("a.go", "package a\n\nfunc F(x interface{}) {\n}\n", "package a\n\nfunc F(x any) {\n}\n"),
    ("a.go", "package a\n\nconst A, B = 1, 2\n", "package a\n\nconst (\n\tA = 1\n\tB = 2\n)\n"),
    ("a.go", "package a\n\nvar A = 1\nvar B = 2\n", "package a\n\nvar A, B = 1, 2\n"),
    ("a.go", "package a\n\nfunc F() (int, error) {\n}\n", "package a\n\nfunc F() (\n\tint,\n\terror,\n) {\n}\n"),
    ("a.go", "package a\n\ntype C struct {\n\tName string\n}\n", "package a\n\ntype C = conf.C\n"),
    ("a.rs", "pub fn f() -> std::io::Result<A> {\n}\n", "use std::io;\npub fn f() -> io::Result<A> {\n}\n"),
    ("a.rs", "pub fn f<'a>(x: &'a str) -> &'a str {\n}\n", "pub fn f(x: &str) -> &str {\n}\n"),
    (
        "a.rs",
        "pub struct A;\nimpl A {\n    pub fn f() -> A {\n}\n}\n",
        "pub struct A;\nimpl A {\n    pub fn f() -> Self {\n}\n}\n",
    ),
    ("a.rs", "pub fn f(x: u8) {\n}\n", "mod b;\npub use b::{f, g as f};\n"),
    ("a.rs", RUST, RUST + "\n#[cfg(test)]\nmod tests {\n    pub fn helper() {}\n}\n"),
    (
        "A.java",
        "public class A {\n    public void f(java.util.List<String> x) {}\n}\n",
        "public class A {\n    public void f(List<String> x) {}\n}\n",
    ),
    (
        "A.java",
        "public class A {\n    public void f(String... x) {}\n}\n",
        "public class A {\n    @Deprecated public void f(String ... x) {}\n}\n",
    ),
    ("a.tsx", "export function B({ kind = 'x', size }: P) {}\n", "export function B({ kind, size }: P) {}\n"),
    ("a.js", "export const a = s.a\nexport const b = s.b\n", "export const { a, c: b = 1 } = s\n"),
    ("a.js", "export const a = 1, b = 2\n", "export const a = 1\nexport const b = 2\n"),
    ("a.js", "module.exports = { a, b }\n", "module.exports = {\n  a,\n  b: { c: 1 },\n}\n"),
    (
        "a.ts",
        "export class A {\n  b = new Map()\n  c = z.a().b()\n}\n",
        "export class A {\n  b =\n    new Map()\n  c = z\n    .a()\n    .b()\n}\n",
    ),
    ("a.ts", "export interface A {\n  k: 'a' | 'b'\n}\n", 'export interface A {\n  k:\n    | "a"\n    | "b";\n}\n'),
    ("a.ts", "export type K = 'a' | 'b'\n", "export type K =\n  | 'a'\n  | 'b'\n"),
    ("a.ts", TS, "\ufeff" + TS.replace("\n", "\r\n")),
    ("a.py", PY, "\ufeff" + PY.replace("\n", "\r\n")),
    ("a.py", "def f(x):\n    return x\n", "from b import f\n"),
]


@every("path, before, after", RESPELLED)
def test_another_spelling_of_the_same_names_is_no_change(path: str, before: str, after: str) -> None:
    proof = judge("preserving", path, after, before)
    assert (proof.result, proof.output.partition(";")[0]) == (evidence.PASSED, "declared preserving")


@every(
    "path, before, after, words",
    [
        (
            "a.go",
            "package a\n\nfunc F[T any](x T) {\n}\n",
            "package a\n\nfunc F[E any](x E) {\n}\n",
            "another type of p",
        ),
        (
            "a.go",
            "package a\n\nfunc F(x A) {\n}\n",
            "package a\n\nfunc F(x A, o ...Option) {\n}\n",
            "a new parameter 2",
        ),
        (
            "a.go",
            "package a\n\ntype A struct {\n\tName string\n}\n",
            "package a\n\ntype A struct {\n\tbase\n}\n",
            "A.Name was removed",
        ),
        ("a.rs", "pub fn f() -> Result<(), Error> {\n}\n", "pub fn f() -> Result<()> {\n}\n", "f has another result"),
        ("a.rs", "pub fn f() {\n}\n", "pub use b::*;\n", "f was removed"),
        ("a.js", "export function f() {}\n", "export * from './b'\n", "f was removed"),
        (
            "a.js",
            "function f() {}\nmodule.exports = f\n",
            "module.exports = function () {}\n",
            "was a function and is a v",
        ),
        ("a.ts", "export interface A {\n  x: string\n}\n", "export type A = B & C\n", "A is declared in another way"),
        ("a.ts", "export class A {\n  f() {}\n}\n", "export class A extends B {\n}\n", "A.f was removed"),
        (
            "A.java",
            "public class A {\n    public void f() {}\n}\n",
            "public class A extends B {\n}\n",
            "f() was removed",
        ),
        ("a.py", "class A:\n    def f(self): ...\n", "class A(_B):\n    pass\n", "A.f was removed"),
        (
            "a.py",
            "class A:\n    def __init__(self): ...\n",
            "@dataclass\nclass A:\n    pass\n",
            "A.__init__ was removed",
        ),
        ("a.py", "class A(str, Enum):\n    X = 'x'\n", "class A(StrEnum):\n    X = 'x'\n", "A lost a base class"),
        ("a.py", "def f(): ...\n", "from b import *\n", "f was removed"),
        ("src/a.h", HEADER, HEADER.replace("int size", "long size"), "config has another type"),
        ("src/a.h", HEADER, HEADER + "class A {\n};\n", "src/a.h: idumb cannot read the file"),
        ("src/a.c", C, C.replace("int load(const char *path)", "int read(const char *path)"), "load was removed"),
        ("bin.sh", SHELL, SHELL.replace("load", "read"), "load was removed"),
        ("src/a.rb", "def load\nend\n", "def load\n  1\nend\n", "src/a.rb: idumb does not know the language"),
        ("src/a.py", "def load(): ...\n", "def (\n", "src/a.py: idumb cannot read the file"),
        ("src/a.js", JS, JS.replace("(path)", "(path, strict)").replace("function", "function"), "a new parameter 2"),
        ("src/a.ts", TS, TS.replace("height?: number", "height?: string"), "Shape.height has another type"),
        ("web/a.go", GO, GO.replace("error)\n}", "error)\n\tClose()\n}"), "Reader.Close was added"),
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


def test_a_module_that_becomes_a_package_and_a_function_that_moves_in_one_go_package_are_no_change() -> None:
    task = Task("T1-01", "A task", change="preserving")
    package = changes.inputs({"src/a.py": PY}, {"src/a/__init__.py": PY}, task=task)
    assert changes.judge(package)["change-class"].passed
    typed = changes.inputs({"src/a/index.js": JS}, {"src/a.ts": JS}, task=task)
    assert changes.judge(typed)["change-class"].passed
    before = {"web/a.go": GO, "web/b.go": "package web\n"}
    moved = {"web/a.go": "package web\n", "web/b.go": GO}
    assert changes.judge(changes.inputs(before, moved, task=task))["change-class"].passed


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


@every(
    "piece, suffixes",
    [
        ("/* ", ("ts", "go")),
        ("a<{", ("ts", "go", "rs", "java")),
        ("export ", ("ts",)),
        ("func (", ("go", "h", "c")),
        ("public static ", ("java", "h", "c")),
    ],
)
def test_reading_a_source_takes_linear_time(piece: str, suffixes: tuple[str, ...]) -> None:
    """S11: the patterns read untrusted text."""
    task = Task("T1-01", "A task", change="preserving")

    def changed(path: str, size: int) -> Inputs:
        return changes.inputs({path: "a\n"}, {path: f"{piece * size}\n{piece * size}"}, task=task)

    for suffix in suffixes:
        assert_linear(change_class.judge, functools.partial(changed, f"a.{suffix}"))
