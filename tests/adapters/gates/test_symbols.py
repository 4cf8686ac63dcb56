"""R-GIT-5: the names that a file defines."""

from __future__ import annotations

import functools

from idumb.domain.plans.plan import SymbolClaim
from idumb.domain.proof import symbols as compared
from idumb.domain.proof.symbols import SymbolSet
from idumb.gates import registry
from idumb.gates.languages import symbols
from tests.support.cases import every
from tests.support.growth import assert_linear

PYTHON = """
import os
LIMIT = 3
a, (b, c) = 1, (2, 3)
size: int = 1
def load():
    inner = 1
    def nested(): ...
async def save(): ...
class Config(Base):
    field = 1
    def read(self): ...
    class Inner:
        def deep(self): ...
if LIMIT:
    def chosen(): ...
try:
    def tried(): ...
except ImportError:
    def instead(): ...
"""
_PYTHON_NAMES = "LIMIT a b c size load save Config Config.read Config.Inner Config.Inner.deep chosen tried instead"
SCRIPT = """
/* class Hidden {} */
import x from 'x';
export default function main() {}
export async function load() {}
function* each() {}
export const LIMIT = 3, other = 4;
let count;
export abstract class Store { save() { function inner() {} } }
export interface Shape { a: string }
type Id = string;
export const enum Colour { Red }
enum Size { Small }
  const indented = 1;
"""
GO = """
package main
func main() {}
func (s *Store) Save(x int) error { return nil }
func (Store) Name() string { return "" }
func Map[T any](x []T) {}
type Store struct {}
const Limit = 3
var count int
"""
RUST = """
pub fn load() {}
pub(crate) async fn save() {}
fn private() {}
pub struct Config { a: u8 }
enum Kind { A }
pub trait Read { fn read(&self); }
pub const LIMIT: u8 = 3;
macro_rules! quick { () => {} }
"""
C = """
#define LIMIT 3
static int *load(const char *path)
{
    if (path) { return 0; }
    for (;;) { }
}
void save(void) {
    load("x");
}
int declared(void);
typedef struct point { int x; } point;
namespace deep {
}
int Config::read(int x) const {
}
"""
JAVA = """
public class Config {
    private final int x = 3;
    public static Config load(String path) { return new Config(); }
    public Config() { }
    protected <T> List<T> each() { return null; }
    interface Inner { }
}
"""
SHELL = """
load() { echo; }
function save { echo; }
echo not_one
"""


@every(
    "path, source, names",
    [
        ("a.py", PYTHON, _PYTHON_NAMES),
        ("a.ts", SCRIPT, "main load each LIMIT count Store Shape Id Colour Size"),
        ("a.go", GO, "main Store.Save Store.Name Map Store Limit count"),
        ("a.rs", RUST, "load save private Config Kind Read LIMIT quick"),
        ("a.c", C, "LIMIT load save point deep Config::read"),
        ("A.java", JAVA, "Config load each Inner"),
        ("a.sh", SHELL, "load save"),
    ],
)  # fmt: skip
def test_definitions_are_recognized(path: str, source: str, names: str) -> None:
    assert (symbols.definitions(path, source.encode()) or {}).keys() == set(names.split())


@every(
    "path, data",
    [
        ("a.lua", b"function load() end"),
        ("README", b"load"),
        ("a.py", b"def broken(:"),
        ("a.py", b"\xff\xfe"),
        ("a.py", b"\0"),
        ("a.py", b"(" * 100_000),
    ],
)
def test_unreadable_source_is_not_judged(path: str, data: bytes) -> None:
    assert symbols.definitions(path, data) is None


@every(
    "piece, suffixes",
    [
        ("/* ", ("ts",)),
        ("a ", ("c", "java", "sh")),
        ("a<", ("c", "java", "rs")),
        ("const a = 1\n", ("ts", "go", "rs")),
        ("func (", ("go", "c")),
        ("public static ", ("java", "c")),
    ],
)
def test_reading_a_source_takes_linear_time(piece: str, suffixes: tuple[str, ...]) -> None:
    """S11: the patterns read untrusted text."""
    for suffix in suffixes:
        path = f"a.{suffix}"
        assert symbols.definitions(path, piece.encode()) is not None
        assert_linear(functools.partial(symbols.definitions, path), lambda size: piece.encode() * size)


@every("path, text", [("a.ts", "export const a = 1\n"), ("a.py", "def a():\n    pass\n")])
def test_a_byte_order_mark_is_no_part_of_a_definition(path: str, text: str) -> None:
    assert symbols.definitions(path, b"\xef\xbb\xbf" + text.encode()) == symbols.definitions(path, text.encode())


def test_the_languages_that_are_recorded_are_those_that_can_be_read() -> None:
    gates = registry.StepGates()
    names = [f"src/a.{suffix}" for suffix in registry.SOURCE]
    assert all(gates.can_read(path) and gates.definitions(path, b"") is not None for path in names)
    unknown = ("a.lua", "py", "src.d/go", "Makefile", "a.py/b")
    assert not any(gates.can_read(path) or gates.definitions(path, b"") is not None for path in unknown)


BEFORE = {
    "a.py": "def load():\n    return 1\n\n\nclass Config:\n    def read(self):\n        return 1\n",
    "a.ts": "export function load(): number {\n  return 1\n}\n\nexport const LIMIT = 3\n",
    "a.go": "package a\n\nfunc Load() int {\n\treturn 1\n}\n\ntype Store struct {\n\tsize int\n}\n",
}
SAVE = {
    "a.py": "\n\ndef save():\n    return 2\n",
    "a.ts": "\nexport function save() {}\n",
    "a.go": "\nfunc Save() {\n}\n",
}


def _lines(path: str, after: str, *claims: SymbolClaim, declared: bool = True) -> list[compared.Line]:
    before = symbols.definitions(path, BEFORE[path].encode())
    symbol_set = SymbolSet(path, before, symbols.definitions(path, after.encode()))
    return list(compared.compare(claims if declared else None, [symbol_set]))


@every(
    "path, after, claims, words",
    [
        ("a.py", BEFORE["a.py"] + SAVE["a.py"], (), "the symbol save in a.py was added and is not declared"),
        ("a.ts", "export const LIMIT = 3\n", (), "the symbol load in a.ts was removed and is not declared"),
        (
            "a.go",
            BEFORE["a.go"] + SAVE["a.go"],
            (SymbolClaim("add", "Save"), SymbolClaim("add", "Store.Close")),
            "the symbol Store.Close was declared (add Store.Close), but nothing did that",
        ),
    ],
)
def test_a_symbol_that_the_plan_does_not_expect_is_named(
    path: str, after: str, claims: tuple[SymbolClaim, ...], words: str
) -> None:
    """R-GATE-4. Without declared symbols, the same change is recorded and fails nothing."""
    assert [line.words for line in _lines(path, after, *claims) if not line.holds] == [words]
    assert all(line.holds for line in _lines(path, after, declared=False))


@every(
    "path, after, text",
    [
        ("a.py", BEFORE["a.py"].replace("return 1\n\n", "return 2\n\n"), "changed load in a.py"),
        ("a.py", BEFORE["a.py"].replace("        return 1", "        return 2"), "changed Config.read in a.py"),
        ("a.ts", BEFORE["a.ts"].replace("return 1", "return 2"), "changed load in a.ts"),
        ("a.go", BEFORE["a.go"].replace("size int", "size int64"), "changed Store in a.go"),
        ("a.go", BEFORE["a.go"].replace("Load", "Read"), "removed Load in a.go, added Read in a.go"),
        ("a.py", "# moved\n\n" + BEFORE["a.py"], ""),
        ("a.ts", BEFORE["a.ts"].replace("\n", "\r\n"), ""),
    ],
)
def test_the_definition_that_changed_is_recorded(path: str, after: str, text: str) -> None:
    assert ", ".join(compared.as_texts(_lines(path, after, declared=False))) == text
