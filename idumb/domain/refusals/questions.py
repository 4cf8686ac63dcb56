"""Refusals about questions, dead letters, handoffs, and names on the command line."""

from __future__ import annotations

from collections.abc import Mapping

from idumb.domain.refusals.row import HINT, STATUS, Row, look, row, way

_LETTERS = look("list all dead letters", "idumb dlq list --all", "list")
_HANDOFFS = look("list all handoffs", "idumb handoff list", "list")
_QUESTIONS = look("list the open questions", "idumb decisions", "list")
_NAME = way("rename", "choose another name", "no existing file is replaced")

ROWS: Mapping[str, Row] = {
    "ask.exists": row("Write the prompts", _NAME),
    "dead-letter.ambiguous": row("Find the dead letter", _LETTERS),
    "dead-letter.not-retryable": row("Retry the task", _LETTERS, STATUS),
    "dead-letter.removed": row("Remove the dead letter", _LETTERS),
    "dead-letter.unknown": row("Find the dead letter", _LETTERS),
    "decision.answered": row(
        "Answer the question", _QUESTIONS, way("go-on", "continue the run", "it uses your answer", HINT)
    ),
    "decision.bad-choice": row(
        "Answer the question", way("choose", "pick one of its choices", "the answer is recorded", HINT)
    ),
    "decision.not-confirmed": row("Remember the answer"),
    "decision.not-known": row(
        "Forget the answer", look("list the remembered answers", "idumb decisions --remembered", "list")
    ),
    "decision.not-remembered": row(
        "Remember the answer",
        way("once", "answer it once, without remembering", "only this question is answered", HINT),
    ),
    "decision.unknown": row("Answer the question", _QUESTIONS),
    "decision.void": row("Answer the question", _QUESTIONS),
    "deinit.projects": row(
        "Remove idumb from one of several projects",
        way(
            "all",
            "remove idumb from every project",
            "the history of all projects is removed after a backup; their files stay",
            "idumb deinit --all-projects",
        ),
        way("no", "change nothing", "everything stays as it is"),
    ),
    "deinit.not-confirmed": row(
        "Remove idumb from this repository",
        way(
            "yes",
            "remove everything listed",
            "the refs and the event log are deleted; plans, reports and commits stay",
            "idumb deinit --yes",
        ),
        way("no", "change nothing", "everything stays as it is"),
    ),
    "file.unreadable": row("Read the file", way("look", "check its path and its mode")),
    "handoff.ambiguous": row("Find the handoff", _HANDOFFS),
    "handoff.bad-status": row("Change the handoff", way("status", "choose a valid status", "it is recorded", HINT)),
    "handoff.unknown": row("Find the handoff", _HANDOFFS),
    "question.answered": row(
        "Answer the question", way("edit", "change the answer in the file", "idumb never overwrites your words")
    ),
    "question.no-answer": row("Answer the question", way("answer", "answer it in words", "your answer is kept", HINT)),
    "question.unknown": row(
        "Answer the question",
        way("list", "list the questions of the phase", "at a terminal, you are asked each one", HINT),
    ),
    "question.waiting": row(
        "Plan with all answers",
        way(
            "answer",
            "answer each question in its file, or with --answer",
            "the answers are kept",
            "idumb discuss {phase}",
        ),
    ),
}
