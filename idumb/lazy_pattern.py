"""`re.compile`, put off until the pattern is used.

A command loads some two hundred regular expressions with its modules and uses a tenth of them. To compile one takes as
long as to load a small module.

Type checkers see `re.compile`. A pattern has the attributes of `re.Pattern`, but is no instance of it, so the functions
of `re` do not take it, and `match.re` is another object. One that cannot be compiled raises re.error at its first use.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

__all__ = ["compile"]

_ATTRIBUTES = tuple(name for name in dir(re.Pattern) if not name.startswith("_") and name != "pattern")


class LazyPattern:
    """A pattern that becomes compiled when an attribute other than `pattern` is asked for."""

    __slots__ = ("_flags", "pattern", *_ATTRIBUTES)

    def __init__(self, pattern: str | bytes, flags: int = 0) -> None:
        self.pattern = pattern
        self._flags = flags

    def __getattr__(self, name: str) -> Any:
        """Compile: the slot `name` is empty. From now on the slots hold the methods of the compiled pattern."""
        if name not in _ATTRIBUTES:
            raise AttributeError(f"a pattern has no attribute {name!r}")
        compiled = re.compile(self.pattern, self._flags)
        for known in _ATTRIBUTES:
            setattr(self, known, getattr(compiled, known))
        return getattr(compiled, name)

    def __repr__(self) -> str:
        return f"lazy_pattern.compile({self.pattern!r}, {self._flags!r})"


if TYPE_CHECKING:
    from re import compile  # noqa: A004 - the same name for the same thing
else:
    compile = LazyPattern
