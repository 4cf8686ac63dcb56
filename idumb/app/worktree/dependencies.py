"""How the dependencies can be installed that the manifests in the working tree name."""

from __future__ import annotations

from idumb.app.core.services import Services
from idumb.domain import dependency_setup
from idumb.domain.dependency_setup import Proposal


def proposals(services: Services) -> tuple[Proposal, ...]:
    """Return a proposal for each kind of dependencies."""
    present = services.files.existing(dependency_setup.FILES)
    return dependency_setup.proposals(present, lambda path: services.reports.read(path) or "")
