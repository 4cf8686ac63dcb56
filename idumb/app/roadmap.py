"""Put a phase at the end of the roadmap."""

from __future__ import annotations

import re

from idumb.app import bundle, place, session
from idumb.app.services import Services
from idumb.domain import quoting
from idumb.domain.errors import InputError


def add(services: Services, title: str, goal: str) -> str:
    """The number of the new phase: behind the greatest whole number of roadmap and folders. Nothing else changes."""
    place.require_initialised(services)
    words = quoting.one_line(quoting.shown(title))
    if not words:
        raise InputError("roadmap.no-title", "A phase needs a title.", hint="idumb roadmap --add TITLE")
    with session.owned(services, "roadmap") as owned:
        owned.record()
        known = [n for n, _, _ in services.plans.roadmap()] + [n for n, _ in services.plans.phases()]
        whole = (int(found[0]) for number in known if (found := re.match(r"\d+", number)))
        number = str(max(whole, default=0) + 1)
        before = services.reports.read(bundle.ROADMAP) or "# Roadmap\n"
        text = services.texts.with_phase(before, number, words, quoting.one_line(quoting.shown(goal)))
        services.reports.write_source(bundle.ROADMAP, text)
        services.trees.force((bundle.ROADMAP,))
    return number
