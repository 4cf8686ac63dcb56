"""Messages of commits: the user's template, and idumb's trailers."""

from __future__ import annotations

import json

from idumb.app.attempt import record
from idumb.domain.plans.plan import Task
from idumb.domain.settings import GitSettings
from idumb.markdown import configuration
from tests.support.cases import every

VALUES = {"title": "Split\x1b words", "id": "T1-01", "phase": "1"}
TRAILERS = {"Idumb-Run": "r", "Idumb-Task": "T1-01"}


@every(
    "template, body, message",
    [
        ("{title}", "", "Split  words\n\nIdumb-Run: r\nIdumb-Task: T1-01\n"),
        ("feat({phase}): {title}", "", "feat(1): Split  words\n\nIdumb-Run: r\nIdumb-Task: T1-01\n"),
        ("{title}\n\nFor {id}.\n", "Why.", "Split  words\n\nFor T1-01.\n\nWhy.\n\nIdumb-Run: r\nIdumb-Task: T1-01\n"),
        ("{title}\n\nRefs: {id}\n", "Why.", "Split  words\n\nWhy.\n\nRefs: T1-01\nIdumb-Run: r\nIdumb-Task: T1-01\n"),
        ("fix: {title}", "Why.", "fix: Split  words\n\nWhy.\n\nIdumb-Run: r\nIdumb-Task: T1-01\n"),
    ],
)
def test_a_template_makes_the_message_and_the_trailers_are_the_last_paragraph(
    template: str, body: str, message: str
) -> None:
    assert GitSettings(message=template).commit_message(VALUES, TRAILERS, body) == message


def test_a_value_that_looks_like_a_placeholder_stays_text() -> None:
    values = {**VALUES, "title": "Show {id}"}
    assert GitSettings(message="{title} {id}").commit_message(values, {}) == "Show {id} T1-01"


FIELDS = "text with {title}, {id} and {phase}"
SUBJECT = ("text that begins with the subject of the commit", "write the subject on the first line")
TRAILER = ("text without a line that begins with Idumb-, as only idumb's own trailers do", "remove the line")


@every(
    "template, accepted, fix",
    [
        ("{title", FIELDS, "remove the single {"),
        ("title}", FIELDS, "remove the single }"),
        ("{{title}}", FIELDS, "remove the single {"),
        ("{titel}", FIELDS, "did you mean {title}?"),
        ("{title:.5}", FIELDS, "did you mean {title}?"),
        ("{author}", FIELDS, "remove {author}"),
        ("", *SUBJECT),
        (" \n{title}", *SUBJECT),
        ("{title}\n\nIdumb-Task: T9-09", *TRAILER),
        ("{title}\r", "text without control characters", "remove the control character"),
    ],
)
def test_a_template_that_makes_no_message_says_what_is_accepted_and_how_to_fix_it(
    template: str, accepted: str, fix: str
) -> None:
    settings, (finding,) = configuration.read(f"git:\n  message: {json.dumps(template)}\n".encode())
    assert settings is None
    assert finding.place == ".idumb/config.yaml:2"
    assert (finding.accepted, finding.fix) == (accepted, fix)


@every(
    "title, description, message",
    [
        ("Fix the typo", "", ("Fix the typo", "")),
        ("Fix the typo Readers see it.", "Fix the typo\n\nReaders see it.", ("Fix the typo", "Readers see it.")),
        ("one two…", "one two three", ("one two…", "one two three")),
        ("Title", "Notes for the builder", ("Title", "")),
    ],
)
def test_a_title_that_shortens_a_description_is_committed_with_all_of_its_words(
    title: str, description: str, message: tuple[str, str]
) -> None:
    assert record._title_and_body(Task("TQ1-01", title, description=description)) == message
