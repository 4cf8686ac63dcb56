"""Proxies that the environment names; libraries use them silently."""

from __future__ import annotations

import os

_NAMES = ("HTTPS_PROXY", "HTTP_PROXY", "ALL_PROXY")


def named() -> tuple[str, ...]:
    """Return the variables that name a proxy, as they are spelled."""
    return tuple(each for name in _NAMES for each in (name, name.lower()) if os.environ.get(each))
