"""The samples of all programmes, with a fixed seed; those of T8 are in `tests/states/test_matrix.py`, by name."""

from __future__ import annotations

import pytest

from tests.crash import programme, registry


@pytest.mark.nightly
@pytest.mark.timeout(600)
@pytest.mark.parametrize("name", [name for name in registry.MODULES if name != "T8"])
def test_the_sample_of_a_programme_passes(name: str) -> None:
    programme.at_night(registry.load(name))


def test_each_programme_has_a_case_on_a_push() -> None:
    """T8 has an item for each kind of state."""
    programmes = [registry.load(name) for name in registry.MODULES if name != "T8"]
    assert [one.id for one in programmes if not 0 < one.push <= one.sample] == []
