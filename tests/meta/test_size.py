"""Each room of the package stays under its budget of code lines. A budget only falls: `python -m tests.meta.size`."""

from __future__ import annotations

from tests.meta import size

BUDGETS = {
    "domain": 9_170,
    "markdown": 6_924,
    "app, engine rooms": 7_825,
    "app, use cases": 9_989,
    "composition": 730,
    "cli, views": 5_177,
    "see and steer": 649,
    "git": 4_790,
    "store": 1_915,
    "system": 2_329,
    "gates": 2_017,
    "agents, fake_model": 4_537,
    "the root": 197,
}
TESTS = 77_418


def test_no_room_is_above_its_budget() -> None:
    sizes = size.by_room()
    assert {room: lines for room, lines in sizes.items() if lines > BUDGETS[room]} == {}


def test_each_module_is_counted_in_one_room() -> None:
    names = [name for name, _ in size.modules()]
    assert [name for name in names if sum(holds(name) for holds in size.ROOMS.values()) != 1] == []


def test_the_tests_are_not_above_their_budget() -> None:
    assert size.lines_of_tests() <= TESTS


def test_blank_lines_comments_and_docstrings_are_no_code() -> None:
    code = '"""Module."""\n\n# A comment.\nx = """a\nb"""  # two lines of code\n\n\ndef f() -> None:\n    """Do."""\n'
    assert size.code_lines(code + "    return\n") == 4
