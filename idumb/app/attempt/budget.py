"""Ceilings on what agents use: checked before each attempt; a person decides when one is reached."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec.structs import replace

from idumb.app.core import questions
from idumb.app.core.run_context import RunContext
from idumb.domain import agent
from idumb.domain.action import LIMIT, Decision
from idumb.domain.plans.plan import Task
from idumb.domain.runs import spending
from idumb.domain.runs.run import RunState
from idumb.domain.runs.spending import CeilingReached, Spent
from idumb.domain.settings import STOP, Ceiling, Settings

TASK = "task"
RUN = "run"


def _spans(settings: Settings, state: RunState, task: str | None) -> Iterator[tuple[str, Ceiling, Spent]]:
    """Yield each configured ceiling: what it limits, its amount with what a person added, and what is used.

    Without a task, only that of the run: a role is no attempt, so the part about attempts does not limit it.
    """
    roles = ((role, settings.roles.get(role)) for role in (agent.BUILDER, agent.VALIDATOR))
    ceilings = {**settings.ceilings, **{role: own.ceiling for role, own in roles if own is not None}}
    for scope in (RUN,) if task is None else (TASK, RUN, agent.BUILDER, agent.VALIDATOR):
        ceiling = ceilings.get(scope)
        if ceiling is None:
            continue
        if scope == TASK and task is not None:
            spent = state.tasks[task].progress.spent
        else:
            spent = spending.total(state.spent.values()) if scope == RUN else state.spent.get(scope, Spent())
        raised = spending.raise_ceiling(ceiling, questions.times_raised(state, task if scope == TASK else None, scope))
        yield scope, raised if task is not None else replace(raised, attempts=None), spent


def left_for_task(settings: Settings, state: RunState, task: str) -> Ceiling:
    """Return what another attempt may use of all its ceilings."""
    return spending.lowest(spending.remaining(limit, spent) for _, limit, spent in _spans(settings, state, task))


def left_for_role(settings: Settings, state: RunState) -> Ceiling:
    """Return what a role may use of the run's ceiling."""
    return next((spending.remaining(limit, spent) for _, limit, spent in _spans(settings, state, None)), Ceiling())


def reached(settings: Settings, state: RunState, task: str | None) -> CeilingReached | None:
    """Return the ceiling that another attempt would exceed, or that of the run for a role; None if there is none."""
    ceilings = (
        spending.reached_ceiling(scope, ceiling, spent) for scope, ceiling, spent in _spans(settings, state, task)
    )
    return next((ceiling for ceiling in ceilings if ceiling is not None), None)


def is_stopped(state: RunState, task: str, ceiling: CeilingReached) -> bool:
    """Return whether a person chose to stop, at this question or at the run's or role's ceiling of the same amount."""
    asked = questions.answered(state, LIMIT, None, task if ceiling.scope == TASK else None)
    last = [state.answers[q["id"]]["choice"] for q in asked if q["subject"] == ceiling.scope]
    return last[-1:] == [STOP]


def note_if_blind(context: RunContext, task: Task) -> None:
    """Report once that a ceiling cannot hold, because agents did not report what they used."""
    for scope, ceiling, spent in _spans(context.services.settings, context.state, task.id):
        if spending.is_blind(ceiling, spent):
            words = f"The ceiling of the {scope} covers tokens or money, and its agents did not report all they used"
            context.tell_once(f"blind {scope}", f"{words}; it may be exceeded without notice")


def question(task: Task, reached: CeilingReached, state: RunState) -> Decision:
    """Return the question at a ceiling. An answer covers only the present amount: the next one is asked anew."""
    number = questions.times_raised(state, task.id if reached.scope == TASK else None, reached.scope) + 1
    lasting = "Or change `ceilings` in .idumb/config.yaml and start a new run"
    words = f"{reached.words[:1].upper()}{reached.words[1:]}"
    place = f"roles.{reached.scope}.ceiling" if reached.scope in agent.ROLES else f"ceilings.{reached.scope}"
    setting = f"{place}.{reached.name} {reached.most / number * (number + 1):.15g}"
    return questions.about(
        LIMIT, task, number, (reached.words, lasting), subject=reached.scope, Words=words, setting=setting
    )
