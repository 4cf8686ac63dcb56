"""The stamp of a file: what the system says about it without reading it. Every write changes it.

No program can set ctime, so a stamp proves that a file is as it was, unless the file changed within `clock.TICK`.
"""

from __future__ import annotations

import operator
import os
from collections.abc import Callable

facts: Callable[[os.stat_result], tuple[int, int, int, int, int]] = operator.attrgetter(
    "st_ino", "st_mode", "st_size", "st_mtime_ns", "st_ctime_ns"
)
"""Times are in nanoseconds. The device is no part of it: its number may differ after a restart of the machine."""
