"""Refusals about questions, dead letters, handoffs, and what is named on the command line."""

from __future__ import annotations

from collections.abc import Mapping

from idumb.domain.refusals.row import HINT, LOOK, STATUS, Row, row, way

_LETTERS = way("list", "see all dead letters", LOOK, "idumb dlq list --all")
_HANDOFFS = way("list", "see all handoffs", LOOK, "idumb handoff list")
_QUESTIONS = way("list", "see the questions that wait", LOOK, "idumb decisions")
_NAME = way("rename", "choose another name", "nothing that is there is replaced")

ROWS: Mapping[str, Row] = {
    "ask.exists": row("Write the prompts", _NAME),
    "dead-letter.ambiguous": row("Find the dead letter", _LETTERS),
    "dead-letter.not-retryable": row("Try it again", _LETTERS, STATUS),
    "dead-letter.removed": row("Remove the dead letter", _LETTERS),
    "dead-letter.unknown": row("Find the dead letter", _LETTERS),
    "debug.file-exists": row("Write the report", _NAME),
    "debug.nothing": row("Debug a failed task", way("look", "see where everything is", LOOK, "idumb status")),
    "decision.answered": row(
        "Answer the question", _QUESTIONS, way("go-on", "go on with the run", "the answer counts", HINT)
    ),
    "decision.bad-choice": row(
        "Answer the question", way("choose", "take one of its choices", "the answer is recorded", HINT)
    ),
    "decision.not-confirmed": row("Remember the answer"),
    "decision.not-known": row(
        "Forget the answer", way("list", "see the remembered answers", LOOK, "idumb decisions --remembered")
    ),
    "decision.not-remembered": row(
        "Remember the answer", way("once", "answer it this once", "only this question is answered", HINT)
    ),
    "decision.unknown": row("Answer the question", _QUESTIONS),
    "decision.void": row("Answer the question", _QUESTIONS),
    "deinit.not-confirmed": row(
        "Take idumb out of this repository",
        way(
            "yes",
            "remove what is listed",
            "refs and the event log go; plans, reports and commits stay",
            "idumb deinit --yes",
        ),
        way("no", "leave everything as it is", "nothing happens"),
    ),
    "file.unreadable": row(
        "Read the file", way("look", "look at its path and its mode", "then run the same command again")
    ),
    "handoff.ambiguous": row("Find the handoff", _HANDOFFS),
    "handoff.bad-status": row(
        "Change the handoff", way("status", "give it a status that there is", "it is recorded", HINT)
    ),
    "handoff.unknown": row("Find the handoff", _HANDOFFS),
    "question.answered": row(
        "Answer the question", way("edit", "change the answer in the file", "what a person wrote stays theirs")
    ),
    "question.no-answer": row("Answer the question", way("answer", "answer it with words", "they are kept", HINT)),
    "question.unknown": row(
        "Answer the question", way("list", "see the phase's questions", "those at a terminal are asked", HINT)
    ),
    "question.waiting": row(
        "Plan with every answer",
        way(
            "answer",
            "answer each question in its file, or with --answer",
            "the answers are kept",
            "idumb discuss {phase}",
        ),
    ),
}
