"""Each room of the package stays under its budget of code lines. A budget only falls: `python -m tests.meta.size`."""

from __future__ import annotations

from tests.meta import size

BUDGETS = {
    "domain": 7_929,
    "markdown": 6_381,
    "app, engine rooms": 6_880,
    "app, use cases": 7_797,
    "composition": 676,
    "cli, views": 4_192,
    "see and steer": 1_907,
    "git": 4_415,
    "store": 1_688,
    "system": 2_067,
    "gates": 1_814,
    "agents, fake_model": 3_381,
    "the root": 25,
}
FILES = 391
TESTS = 64_052


def test_no_room_is_above_its_budget() -> None:
    sizes = size.by_room()
    assert {room: lines for room, lines in sizes.items() if lines > BUDGETS[room]} == {}


def test_the_package_has_no_more_files_than_its_budget() -> None:
    assert len(list(size.modules())) <= FILES


def test_each_module_is_counted_in_one_room() -> None:
    names = [name for name, _ in size.modules()]
    assert [name for name in names if sum(holds(name) for holds in size.ROOMS.values()) != 1] == []


def test_the_tests_are_not_above_their_budget() -> None:
    assert size.lines_of_tests() <= TESTS


def test_blank_lines_comments_and_docstrings_are_no_code() -> None:
    code = '"""Module."""\n\n# A comment.\nx = """a\nb"""  # two lines of code\n\n\ndef f() -> None:\n    """Do."""\n'
    assert size.code_lines(code + "    return\n") == 4


PAGES = 392_738  # bytes of README.md and docs/


def test_readme_and_docs_are_not_above_their_budget() -> None:
    assert size.bytes_of_pages() <= PAGES
