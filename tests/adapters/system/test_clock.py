"""Times as the event log keeps them."""

from __future__ import annotations

from datetime import UTC, datetime

from idumb.system import clock
from tests.support.cases import every


@every("nanoseconds", [0, 1, 999_999_999, 1_767_323_045_123_456_789, 4_102_444_800_000_000_000])
def test_a_time_is_written_as_iso_8601_in_utc(nanoseconds: int) -> None:
    seconds, rest = divmod(nanoseconds, 1_000_000_000)
    expected = datetime.fromtimestamp(seconds, UTC).replace(microsecond=rest // 1000)
    text = clock.text(nanoseconds)
    assert text == expected.isoformat(timespec="microseconds").replace("+00:00", "Z")
