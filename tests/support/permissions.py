"""Permissions of files that count for root too."""

from __future__ import annotations

import ctypes
import os
import traceback
from collections.abc import Callable

_DROP_FROM_BOUNDING_SET, _VERSION_3 = 24, 0x20080522
_OVERRIDES = (1, 2)  # CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH


def call_obeying(function: Callable[[], object]) -> None:
    """Call `function` without the right to ignore permissions. On Linux root has it; only a process can give it up."""
    if os.geteuid() != 0:
        function()
    elif child := os.fork():
        assert os.waitpid(child, 0)[1] == 0
    else:
        failed = True
        try:
            _give_up()
            function()
            failed = False
        finally:
            if failed:
                traceback.print_exc()
            os._exit(failed)


def _give_up() -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    header, sets = (ctypes.c_uint32 * 2)(_VERSION_3), (ctypes.c_uint32 * 6)()
    assert libc.capget(header, sets) == 0
    for capability in _OVERRIDES:
        assert libc.prctl(_DROP_FROM_BOUNDING_SET, capability, 0, 0, 0) == 0  # git's processes get none of these either
        sets[0] &= ~(1 << capability)
        sets[1] &= ~(1 << capability)
    assert libc.capset(header, sets) == 0
