"""Which changes of a module its tests do not notice: `python -m bench.mutants idumb/PATH.py tests/PATH...`.

Each mutant of a function runs in a fork of one process that has collected the tests, and no file changes. The operators
are those of cosmic-ray, which is no dependency: `pip install cosmic-ray`. Two are drawn per place and kind.
"""

from __future__ import annotations

import contextlib
import functools
import gc
import inspect
import os
import random
import signal
import sys
from collections import defaultdict
from collections.abc import Iterator, Sequence
from importlib import import_module
from pathlib import Path
from types import CodeType, FunctionType

import pytest
from _pytest.runner import runtestprotocol

_ALIKE = ("_Eq_Is", "_Eq_IsNot", "_NotEq_Is", "_NotEq_IsNot", "_Is_Eq", "_IsNot_NotEq", "RemoveDecorator")


def pytest_runtestloop(session: pytest.Session) -> bool:
    path, terminal = Path(sys.argv[1]).resolve(), session.config.get_terminal_writer()
    assert _pass(session.items), "the tests fail without a mutant"
    gc.unfreeze()
    objects = gc.get_objects()
    live = [each for each in objects if isinstance(each, FunctionType) and each.__code__.co_filename == str(path)]
    caches = [each for each in objects if isinstance(each, functools._lru_cache_wrapper)]
    survives = functools.partial(_survives, session, live, caches)
    assert survives({}), "the tests fail in a second process"
    for line, operator, codes in (mutants := list(_mutants(path))):
        if survives(codes):
            terminal.line(f"survived: {path.name}:{line} {operator}")
    terminal.line(f"{len(mutants)} mutants")
    return True


def _survives(
    session: pytest.Session,
    live: Sequence[FunctionType],
    caches: Sequence[functools._lru_cache_wrapper[object]],
    codes: dict[tuple[int, str], CodeType],
) -> bool:
    """Run the tests in a fork in which functions have these codes, and folders of its own; return whether they pass."""
    if not (child := os.fork()):
        signal.setitimer(signal.ITIMER_PROF, 30)  # ends what a mutant made endless
        places: pytest.TempPathFactory = session.config._tmp_path_factory  # type: ignore[attr-defined]
        places._basetemp = places.mktemp("mutant")
        for each in live:
            each.__code__ = codes.get((each.__code__.co_firstlineno, each.__qualname__), each.__code__)
        list(map(functools._lru_cache_wrapper.cache_clear, caches))
        os._exit(not _pass(session.items))
    return os.waitpid(child, 0)[1] == 0


def _pass(items: Sequence[pytest.Item]) -> bool:
    pairs = zip(items, [*items[1:], None], strict=True)
    return not any(each.failed for item, after in pairs for each in runtestprotocol(item, log=False, nextitem=after))


def _mutants(path: Path) -> Iterator[tuple[int, str, dict[tuple[int, str], CodeType]]]:
    plugins, trees, mutating = (import_module(f"cosmic_ray.{name}") for name in ("plugins", "ast", "mutating"))
    source, chance, groups = path.read_text(encoding="utf-8"), random.Random(1), defaultdict(list)
    before, nodes = _codes(compile(source, path, "exec")), [*trees.ast_nodes(trees.get_ast(source))]
    for name in plugins.operator_names():
        if not name.endswith(_ALIKE) and not plugins.get_operator(name).arguments():
            operator = plugins.get_operator(name)()
            places = [start for node in nodes for start, _ in operator.mutation_positions(node)]
            for number, place in enumerate(places):
                groups[place, name.partition("_")[0]].append((name, operator, number))
    for ((line, _), _), group in sorted(groups.items()):
        for name, operator, number in chance.sample(group, min(2, len(group))):
            # Some mutants are no program, and an exception with a dot in its name is not replaced.
            with contextlib.suppress(SyntaxError, AttributeError):
                after = _codes(compile(mutating.mutate_code(source, operator, number), path, "exec"))
                if changed := {place: code for place, code in after.items() if before.get(place) != code}:
                    yield line, name, changed


def _codes(code: CodeType) -> dict[tuple[int, str], CodeType]:
    nested = [each for each in code.co_consts if isinstance(each, CodeType)]
    own = {(each.co_firstlineno, each.co_qualname): each for each in nested if each.co_flags & inspect.CO_OPTIMIZED}
    return own | {place: inner for each in nested for place, inner in _codes(each).items()}


if __name__ == "__main__":
    options = ["-q", "-pno:xdist", "-pno:cacheprovider", "-otimeout=0", *sys.argv[2:]]
    sys.exit(pytest.main(options, plugins=[sys.modules[__name__]]))
