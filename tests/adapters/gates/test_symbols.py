"""R-GIT-5: the names that a file defines."""

from __future__ import annotations

import pytest

from idumb.gates import symbols

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


@pytest.mark.parametrize(
    ("path", "source", "names"),
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
    assert symbols.defined(path, source.encode()) == frozenset(names.split())


@pytest.mark.parametrize(
    ("path", "data"),
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
    assert symbols.defined(path, data) is None


@pytest.mark.parametrize("suffix", ["ts", "go", "rs", "c", "java", "sh"])
@pytest.mark.parametrize("text", ["func (" * 20_000, "a " * 50_000, "public static " * 20_000, "a<" * 50_000])
def test_no_source_takes_long_to_read(suffix: str, text: str) -> None:
    """S11: the patterns read untrusted text."""
    assert symbols.defined(f"a.{suffix}", text.encode()) is not None
