"""The questions of a context file: only idumb's own section is written, and people may answer in it by hand."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from idumb.domain import phase_documents
from idumb.domain.phase_documents import Question, number_questions, standard_questions
from tests.support.cases import every

OWN = "# Mine\r\n\r\n- a bullet  \r\n\r\n```\n## Questions and answers\n```\n\n## Last\n\nwords without an end"
ASKED = (Question("Q-1", "What for?", "Nobody said."), Question("Q-2", "What not?"))

words = st.text(st.sampled_from("ab#>-`~*_<!:. \n\t\r\x0b\u2028\x1b{}"), min_size=1, max_size=40).filter(
    lambda t: bool(t.strip())
)


def test_questions_are_appended_and_the_user_s_text_stays_byte_for_byte() -> None:
    """R-ADAPT-4."""
    text = phase_documents.updated(OWN, "unused", ASKED, {})
    assert text.startswith(OWN)
    assert phase_documents.questions_in(text) == ASKED


def test_a_new_file_begins_with_its_title() -> None:
    assert phase_documents.updated("", "Phase 2: Greet", ASKED[:1], {}).startswith("# Phase 2: Greet\n\n## Questions")


@every("tail", ["", "\n", "\n## Mine\n", "\n\n## Mine\n\nmy words\n"])
def test_more_questions_go_to_the_end_of_the_section_and_not_of_the_file(tail: str) -> None:
    text = phase_documents.updated("", "T", ASKED, {}).rstrip("\n") + tail
    more = phase_documents.updated(text, "T", [Question("Q-3", "And then?")], {})
    assert more.endswith(tail)
    assert more.startswith(text.removesuffix(tail))
    assert [q.id for q in phase_documents.questions_in(more)] == ["Q-1", "Q-2", "Q-3"]


def test_an_answer_replaces_its_placeholder_and_nothing_else_changes() -> None:
    text = phase_documents.updated(OWN, "T", ASKED, {})
    before, after = text.split(phase_documents.OPEN, 1)
    end = "\r\n"
    assert phase_documents.updated(text, "T", (), {"Q-1": "me\nand you"}) == f"{before}> me{end}> and you{after}"


@every("answer", ["by hand", "> quoted", "- a list\n- of two", "#### deeper\n\nstill the answer"])
def test_an_answer_written_by_hand_counts(answer: str) -> None:
    """R-ADAPT-4."""
    text = phase_documents.updated("", "T", ASKED, {}).replace(phase_documents.OPEN, answer, 1)
    first, second = phase_documents.questions_in(text)
    assert first.answer == answer.removeprefix("> ")
    assert not second.answer


def test_the_planner_reads_answered_questions_but_no_open_ones() -> None:
    text = phase_documents.updated("# Mine\n\nwords\n", "T", ASKED, {})
    assert "What for?" not in phase_documents.without_open(text)
    assert "words" in phase_documents.without_open(text)
    answered = phase_documents.without_open(phase_documents.updated(text, "T", (), {"Q-2": "no colours"}))
    assert "no colours" in answered
    assert "What for?" not in answered
    assert phase_documents.without_open(phase_documents.updated("", "T", ASKED, {})) == ""


@given(text=words, why=words, answer=words)
def test_no_question_or_answer_text_becomes_another_question(text: str, why: str, answer: str) -> None:
    """R-ADAPT-4: text stays text, whatever Markdown it looks like."""
    question = Question("Q-1", text, why)
    tail = "\n## Mine\n\nmy words\n"
    page = phase_documents.updated(
        phase_documents.updated("", "T", [question], {}) + tail, "T", [ASKED[1]], {"Q-1": answer}
    )
    assert page.endswith(tail)
    assert [q.id for q in phase_documents.questions_in(page)][-1] == "Q-2"
    assert "<!--" not in page
    assert "\x1b" not in page


def test_a_question_is_not_repeated_and_numbers_continue() -> None:
    numbered = number_questions(ASKED, [("what  FOR?", ""), ("New?", "why"), ("New?", ""), (" ", "")])
    assert numbered == (Question("Q-3", "New?", "why"),)


def test_the_default_questions_omit_what_the_texts_answer() -> None:
    empty = [text for text, _ in standard_questions("## Phase 2: Greet", "", "")]
    checked = "## How it is checked\n\n- make test\n"
    full = [text for text, _ in standard_questions("## Phase 2: Greet\n\nAll", checked, "REQ-1: x")]
    assert empty[0] == "What is true when this phase is done?"
    assert set(full) & set(empty) == set(empty[2:3] + empty[4:])
    assert len(full) == 3
