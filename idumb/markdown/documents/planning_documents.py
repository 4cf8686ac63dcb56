"""Implement the port `Texts`. Each module is imported when it is first needed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from idumb.markdown.documents import report_frontmatter

if TYPE_CHECKING:
    from idumb.domain.question import Question


class MarkdownTexts:
    """Implements the port `Texts`."""

    def roadmap_section(self, text: str, phase: str) -> str:
        from idumb.markdown.documents import roadmap

        return roadmap.section(text, phase)

    def with_phase(self, text: str, number: str, title: str, goal: str, after: str = "") -> str:
        from idumb.markdown.documents import roadmap

        return roadmap.with_phase(text, number, title, goal, after)

    def questions(self, text: str) -> tuple[Question, ...]:
        from idumb.markdown.documents import questions

        return questions.read(text)

    def without_open(self, text: str) -> str:
        from idumb.markdown.documents import questions

        return questions.without_open(text)

    def with_questions(
        self, text: str, title: str, questions: Iterable[Question], answers: Mapping[str, str]
    ) -> str:  # fmt: skip
        from idumb.markdown.documents import questions as section

        return section.written(text, title, questions, answers)

    def research(self, text: str) -> tuple[str | None, str]:

        return report_frontmatter.research(text)

    def plans_in(self, reply: str) -> tuple[str, ...]:
        from idumb.markdown.documents import plan_replies

        return plan_replies.plans_in(reply)

    def stated_criteria(self, text: str) -> tuple[str, ...]:
        from idumb.markdown.documents import stated_criteria as stated

        return stated.criteria(text)
