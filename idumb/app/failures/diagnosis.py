"""Ask the debugger. Its diagnosis is an opinion. A plan that it proposes is kept only if it is a legal amendment."""

from __future__ import annotations

import dataclasses
import json
import shlex
from collections.abc import Mapping
from typing import Any

from idumb import lazy_pattern
from idumb.app.attempt import validator
from idumb.app.contract import loading
from idumb.app.contract.changed_contract import since_lock
from idumb.app.contract.loading import Loaded
from idumb.app.core.services import Services
from idumb.app.roles import role_calls
from idumb.app.roles.role_calls import RoleRequest
from idumb.domain import agent, amendment, outcome, plan_diff, wording
from idumb.domain.action import Action, plain
from idumb.domain.documents import plan_replies
from idumb.domain.errors import IdumbError
from idumb.domain.proof.judgement import Citation
from idumb.domain.runs.run import RunState

BACKUP_FOLDER = "amendments"
_MOST = 20_000
_CITED = lazy_pattern.compile(r"(?<![\w/])([\w.@+-]+(?:/[\w.@+-]+)*):(\d{1,7})\b")


def ask(services: Services, state: RunState, loaded: Loaded, bundle: Mapping[str, Any]) -> dict[str, Any]:
    """Return the `diagnosis`, and the `amendment` that it proposes; None if it proposes none."""
    request = RoleRequest(agent.DEBUGGER, f"phase-{state.phase}", _values(loaded, bundle))
    diagnosis: dict[str, Any] = {
        "binding": role_calls.binding_of(services, agent.DEBUGGER),
        "text": "",
        "failure": "",
        "citations": [],
    }
    result = role_calls.ask(services, request, run=state)
    if result.outcome != outcome.COMPLETED or not result.reply.strip():
        words = result.message or result.failure or "its reply is empty"
        return {"diagnosis": {**diagnosis, "failure": words}, "amendment": None}
    diagnosis |= {"text": wording.truncate(result.reply, _MOST), "citations": _citations(services, state, result.reply)}
    return {"diagnosis": diagnosis, "amendment": _amendment(services, state, loaded, result.reply)}


def _values(loaded: Loaded, bundle: Mapping[str, Any]) -> Mapping[str, str]:
    plans = [f"{path}:\n{wording.fenced(data.decode('utf-8', 'replace'), 'markdown')}" for path, data in loaded.sources]
    facts = {name: bundle[name] for name in ("state", "reason", "since", "task", "checklist")}
    return {
        "phase": str(bundle["phase"]),
        "tasks": bundle["task"]["id"],
        "bundle": wording.fenced(wording.truncate(json.dumps(plain(facts), indent=1)), "json"),
        "plan": wording.truncate("\n\n".join(plans)),
    }


def _citations(services: Services, state: RunState, text: str) -> list[dict[str, Any]]:
    """Return every `file:line` in the text, and whether it exists: in your files, or in what failed tasks left."""
    cited = dict.fromkeys((m[1], int(m[2])) for m in _CITED.finditer(text))
    places = [Citation(path, line) for path, line in cited][:50]
    tree = services.trees.scan() if places else ""
    for task in state.tasks.values() if places else ():
        if task.checkpoint is not None and task.status == outcome.FAILED:
            tree = services.trees.overlay(tree, task.checkpoint.tree, task.checkpoint.files)
    return [
        dataclasses.asdict(dataclasses.replace(c, resolves=validator.resolves(services.trees, c, tree))) for c in places
    ]


def _amendment(services: Services, state: RunState, loaded: Loaded, reply: str) -> dict[str, Any] | None:
    """Keep a proposed plan that the run could continue under; or return the problem of the proposal."""
    offered = plan_replies.plans_in(reply)
    if not offered:
        return None
    none: dict[str, Any] = {"path": None, "plan": None, "what": [], "next": [], "problem": ""}
    if len(offered) > 1:
        return {**none, "problem": f"the reply contains {len(offered)} plans; an amendment changes one"}
    try:
        return {**none, **_checked(services, state, loaded, offered[0])}
    except IdumbError as problem:
        findings = getattr(problem, "findings", ())
        words = wording.listed((f"line {f.line}: {f.message}" for f in findings), between="; ")
        return {**none, "problem": f"{problem.message} {words}".strip()}


def _checked(services: Services, state: RunState, loaded: Loaded, text: str) -> dict[str, Any]:
    data = text.encode("utf-8", "surrogateescape")
    path = _path(services, loaded, data)
    if text.split() == dict(loaded.sources)[path].decode("utf-8", "replace").split():
        return {"problem": "the proposed plan is the current plan"}
    sources = [(p, data if p == path else current) for p, current in loaded.sources]
    proposed = loading.runnable(services, loading.load_sources(services, state.phase, loaded.folder, sources))
    changes = since_lock(services, state, proposed)
    refused = amendment.forbidden(changes.diff, changes.contract, proposed, state)
    if refused is not None:
        return {"problem": refused.words}
    draft_path = services.backups.keep(BACKUP_FOLDER, path.rpartition("/")[2], data)
    copied = f"cp {shlex.quote(draft_path)} {shlex.quote(path)}"
    steps = [copied, Action.of("check-plan", state.phase, "--diff"), Action.of("amend", state.phase, "--from-file")]
    return {"path": draft_path, "plan": path, "what": list(plan_diff.lines(changes.diff)), "next": steps}


def _path(services: Services, loaded: Loaded, data: bytes) -> str:
    """Return the plan that the proposal replaces: the only one of the phase, or the one with the same id."""
    paths = [path for path, _ in loaded.sources]
    if len(paths) == 1:
        return paths[0]
    proposed = services.plans.parse(data, paths[0]).plan
    ids = {services.plans.parse(each, path).plan: path for path, each in loaded.sources}
    return next((path for plan, path in ids.items() if plan and proposed and plan.plan == proposed.plan), paths[0])
