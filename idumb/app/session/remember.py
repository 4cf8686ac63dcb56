"""Makes an answer permanent: the setting that would give the same one, written after a yes."""

from __future__ import annotations

import shlex
from collections.abc import Iterator

from idumb.app.contract import run_lock
from idumb.app.core import kept_runs, questions, run_lookup
from idumb.app.core.journal import Journal
from idumb.app.core.services import Services
from idumb.domain.action import Choice, Decision
from idumb.domain.errors import IdumbError, Interrupted
from idumb.domain.runs.run import DROPPED


def offer(services: Services, journal: Journal) -> tuple[str, ...]:
    """Offer, at a terminal, the settings that make the answers of this command permanent; return what else to know.

    A run continues only with the settings that it began with. While one is not finished, only the command is named.
    """
    found = dict(_settings(services, journal)) if services.asker.interactive else {}
    runs = run_lookup.latest_runs(services) if found else ()
    left = next((state.phase for state in runs if not (kept_runs.is_finished(state) or state.state == DROPPED)), None)
    if left is not None:
        words = f"makes an answer permanent. Run it once phase {left} is verified: its run continues only without it"
        return tuple(f"{command} {words}" for _, command in found.values())
    return tuple(filter(None, (_ask(services, journal, name, *each) for name, each in found.items())))


def _settings(services: Services, journal: Journal) -> Iterator[tuple[str, tuple[str, str]]]:
    """Yield the name of each setting with its value and the command that sets it; the last answer counts.

    Its own effect may have forgotten an answer, such as that a phase does not count, or that a task runs again.
    """
    state = journal.state
    events = services.log.events(run=state.id, operation=journal.operation, kind="decision.answered")
    for id in dict.fromkeys(event.payload["decision"] for event in events):
        command = questions.chosen(state, id).remember if id in state.answers else ""
        if command:
            *_, name, value = shlex.split(command)
            yield name, (value, command)


def _ask(services: Services, journal: Journal, name: str, value: str, command: str) -> str:
    """Ask whether to write a setting, and do it after a yes. Return why it could not be written, or ""."""
    question = Decision.confirmation(
        "remember",
        "remember",
        f"Remember this? It would set `{name}: {value}` in {run_lock.CONFIGURATION}",
        "Every later run then takes this answer, and nobody is asked. A run needs your consent to changed settings.",
        (),
        Choice("yes", "remember it", "the setting is written, and nothing else of the file changes", command),
        "do not",
        "the next run asks again",
    )
    try:
        answer = services.asker.ask(question)
    except Interrupted:  # the run has its result already, so Ctrl-C only means no
        return ""
    if not question.agreed(answer):
        return ""
    try:
        services.change_setting(name, value)
    except (IdumbError, OSError) as problem:
        return f"The setting was not written: {problem}; {command} does it later"
    journal.append("setting.remembered", setting=name, value=value)
    return ""
