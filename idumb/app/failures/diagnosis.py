"""Asks the debugger. Its diagnosis is an opinion; a plan that it offers is kept only where it could be an amendment."""

from __future__ import annotations

import dataclasses
import json
import re
import shlex
from collections.abc import Mapping
from typing import Any

from idumb.app.attempt import validator
from idumb.app.contract import loading
from idumb.app.contract.loading import Loaded
from idumb.app.contract.plan_changes import since
from idumb.app.core.services import Services
from idumb.app.roles import role_calls
from idumb.app.roles.role_calls import RoleRequest
from idumb.app.worktree import tree_guard
from idumb.domain import agent, amendment, outcome, plan_diff, wording
from idumb.domain.errors import IdumbError, Refusal
from idumb.domain.proof.judgement import Citation
from idumb.domain.runs.run import RunState

ATTIC = "amendments"
_MOST = 20_000
_CITED = re.compile(r"(?<![\w/])([\w.@+-]+(?:/[\w.@+-]+)*):(\d{1,7})\b")


def ask(services: Services, state: RunState, loaded: Loaded, bundle: Mapping[str, Any]) -> dict[str, Any]:
    """`diagnosis` and `amendment` of the answer; the latter None where none is offered."""
    asked = RoleRequest(agent.DEBUGGER, f"phase-{state.phase}", _values(loaded, bundle))
    said: dict[str, Any] = {
        "binding": role_calls.binding_of(services, agent.DEBUGGER),
        "text": "",
        "failure": "",
        "citations": [],
    }
    try:
        result = role_calls.ask(services, asked, run=state)
    except Refusal as refusal:
        if refusal.code != tree_guard.CODE:
            raise
        # What was found without an agent is worth as much as before.
        return {"diagnosis": {**said, "failure": f"{refusal.message} [{refusal.code}]"}, "amendment": None}
    if result.outcome != outcome.COMPLETED or not result.reply.strip():
        words = result.message or result.failure or "it said nothing"
        return {"diagnosis": {**said, "failure": words}, "amendment": None}
    said |= {"text": wording.truncate(result.reply, _MOST), "citations": _citations(services, result.reply)}
    return {"diagnosis": said, "amendment": _amendment(services, state, loaded, result.reply)}


def _values(loaded: Loaded, bundle: Mapping[str, Any]) -> Mapping[str, str]:
    plans = [f"{path}:\n{wording.fenced(data.decode('utf-8', 'replace'), 'markdown')}" for path, data in loaded.sources]
    known = {name: bundle[name] for name in ("state", "reason", "since", "tasks", "verification", "checklist")}
    return {
        "phase": str(bundle["phase"]),
        "tasks": ", ".join(task["id"] for task in bundle["tasks"]) or "none of its tasks",
        "bundle": wording.fenced(wording.truncate(json.dumps(known, indent=1)), "json"),
        "plan": wording.truncate("\n\n".join(plans)),
    }


def _citations(services: Services, text: str) -> list[dict[str, Any]]:
    """Every `file:line` in the words, and whether it is there."""
    named = dict.fromkeys((m[1], int(m[2])) for m in _CITED.finditer(text))
    places = [Citation(path, line) for path, line in named][:50]
    tree = services.trees.scan() if places else ""
    return [
        dataclasses.asdict(dataclasses.replace(c, resolves=validator.resolves(services.trees, c, tree))) for c in places
    ]


def _amendment(services: Services, state: RunState, loaded: Loaded, reply: str) -> dict[str, Any] | None:
    """A whole plan that the run could go on under, kept as a file; or why the one that is offered is not."""
    offered = services.texts.plans_in(reply)
    if not offered:
        return None
    none: dict[str, Any] = {"path": None, "plan": None, "what": [], "next": [], "problem": ""}
    if len(offered) > 1:
        return {**none, "problem": f"{len(offered)} plans were offered, and one is amended at a time"}
    try:
        return {**none, **_checked(services, state, loaded, offered[0])}
    except IdumbError as problem:
        found = getattr(problem, "findings", ())
        words = wording.listed((f"line {f.line}: {f.message}" for f in found), between="; ")
        return {**none, "problem": f"{problem.message} {words}".strip()}


def _checked(services: Services, state: RunState, loaded: Loaded, text: str) -> dict[str, Any]:
    data = text.encode("utf-8", "surrogateescape")
    path = _path(services, loaded, data)
    if text.split() == dict(loaded.sources)[path].decode("utf-8", "replace").split():
        return {"problem": "the plan that is offered is the one that is there"}
    sources = [(p, data if p == path else known) for p, known in loaded.sources]
    now = loading.runnable(services, loading.of_sources(services, state.phase, loaded.folder, sources))
    found = since(services, state, now)
    refused = amendment.forbidden(found.diff, found.contract, now, state)
    if refused is not None:
        return {"problem": refused.words}
    kept = services.backups.keep(ATTIC, path.rpartition("/")[2], data)
    copied = f"cp {shlex.quote(kept)} {shlex.quote(path)}"
    steps = [copied, f"idumb plan-diff {state.phase}", f"idumb amend {state.phase} --from-file"]
    return {"path": kept, "plan": path, "what": list(plan_diff.lines(found.diff)), "next": steps}


def _path(services: Services, loaded: Loaded, data: bytes) -> str:
    """Which of the phase's plans it is to take the place of: the only one, or the one of the same id."""
    paths = [path for path, _ in loaded.sources]
    if len(paths) == 1:
        return paths[0]
    wanted = services.plans.parse(data, paths[0]).as_agreed.plan
    known = {services.plans.parse(each, path).as_agreed.plan: path for path, each in loaded.sources}
    return next((path for plan, path in known.items() if plan and wanted and plan.plan == wanted.plan), paths[0])
