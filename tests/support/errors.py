"""Errors of idumb, told apart by their codes."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator

import pytest

from idumb.domain.errors import IdumbError


@contextlib.contextmanager
def refusing(code: str, words: str | None = None) -> Iterator[pytest.ExceptionInfo[IdumbError]]:
    """Assert that the block raises an error with this code; its message matches the pattern `words`."""
    with pytest.raises(IdumbError, match=words) as caught:
        yield caught
    assert caught.value.code == code


def code_of(action: Callable[..., object], *arguments: object) -> str:
    """Return the code of the error that the action raises."""
    with pytest.raises(IdumbError) as caught:
        action(*arguments)
    return caught.value.code
