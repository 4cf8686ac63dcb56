"""Random commits on few names, so that files, folders, links and ignore rules trade places often."""

from __future__ import annotations

import random

from tests.history.nasty import commit
from tests.support.gitrepo import GitSandbox

_NAMES = (
    *("a", "a/b", "b/c/d", "c d", "d", "d/e", "d/f/g", "é", "[z]", "`t`", "nl\nx", "\udcff"),
    *(".gitignore", "x.log", "sub/.gitignore", "sub/y.log", ".env"),
)
_TARGETS = ("a", "nowhere", "d", "./x", "é", ".")
_DATA = (b"", b"x\n", b"a\r\n", b"\x00\xff\r", b"*.log\n", b"!*.log\n*\n", b"d\nsub\n")


def grow(repo: GitSandbox, seed: int, count: int) -> None:
    """Add `count` commits; the same for the same seed."""
    chance = random.Random(seed)
    for number in range(count):
        for _ in range(chance.randrange(1, 5)):
            _change(repo, chance, chance.choice(_NAMES))
        commit(repo, f"random {number}")


def _change(repo: GitSandbox, chance: random.Random, name: str) -> None:
    place = repo.root / name
    kind = chance.random()
    plain = place.is_file() and not place.is_symlink()
    if plain and kind < 0.2:
        place.chmod(chance.choice([0o644, 0o755]))
        return
    for above in place.parents:
        if above != repo.root and repo.root in above.parents and (above.is_symlink() or above.is_file()):
            above.unlink()
    if place.is_symlink() or place.exists():
        repo.remove(name)
    if kind < 0.4:
        return
    if kind < 0.55:
        repo.link(name, chance.choice(_TARGETS))
    else:
        repo.write(name, chance.choice(_DATA), mode=chance.choice([0o644, 0o755]))
