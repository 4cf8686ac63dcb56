"""Reports that came with a clone are shown as history that this repository did not record."""

from __future__ import annotations

from idumb.markdown.documents import report_frontmatter


def test_the_frontmatter_of_a_report_is_read() -> None:
    fields = report_frontmatter.metadata(b"---\ntype: summary\ntasks_completed: 5\n---\n\n# Text\n", "SUMMARY")
    assert fields == {"type": "summary", "tasks_completed": 5}


def test_other_content_is_ignored_and_breaks_nothing() -> None:
    cases: list[bytes] = [
        b"",
        b"# no frontmatter\n",
        b"---\ntype: plan\n---\n",
        b"---\n[" * 3000,
        b"---\n- a\n---\n",
        b"---\n&a [*a]\n---\n",
        b"---\ntype: !!python/object:os.system x\n---\n",
        b"---\n? ]\n---\n",
        b"\xff\xfe---\n",
        b"---\n" + b"x" * 200_000,
    ]
    assert not [data for data in cases if report_frontmatter.metadata(data, "SUMMARY") is not None]
