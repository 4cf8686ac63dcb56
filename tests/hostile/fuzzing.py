"""T10: whatever a file that idumb reads contains, the answer is a result or an error with its place.

Each case writes one mutated or generated file into a real repository and runs a use case on it in this process. Then it
compares every byte of the repository, the git folder and the user's home with the state before. The file of a failed
case is kept under `failed/`.
"""

from __future__ import annotations

import gc
import itertools
import json
import os
import random
import re
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from idumb.app.consent import phase_grants
from idumb.app.contract import changed_contract, loading
from idumb.app.core.services import Result
from idumb.app.reading import status
from idumb.app.review import amend, check_plan
from idumb.cli.opened_services import Silent
from idumb.composition.container import Container
from idumb.domain import amendment, canonical_json
from idumb.domain.contract import Contract
from idumb.domain.errors import IdumbError
from idumb.domain.plans import new_task
from idumb.system import escaping
from idumb.views import answer
from idumb.views import graph as graphs
from idumb.views.terminal.ask import Nobody
from tests.crash.programme import OTHER, SLOW, TRACEBACK, Programme, Tally
from tests.hostile.mutating import generated, mutated
from tests.support import project as projects
from tests.support.gitrepo import Entry, GitSandbox, work_tree
from tests.support.project import Project, making, plan_text, shell, task, write

ROOT = Path(__file__).parents[2]
SECONDS = 1.0
_LARGEST_SEED = 64 * 1024

PLAN = ".planning/phases/1/01-PLAN.md"
STEPS: Mapping[str, Any] = {
    "scope": {"root": ".", "protected": ["*.lock"]},
    "steps": [
        write("a.txt", "one\n"),
        projects.edit("a.txt", "one", "two"),
        {
            "tool": "run",
            "intent": "see that it is there",
            "arguments": {"argv": ["test", "-s", "a.txt"]},
            "timeout": "1m",
        },
        {"tool": "move_file", "intent": "move it into its folder", "arguments": {"from": "a.txt", "to": "b/a.txt"}},
        {
            "tool": "apply_patch",
            "intent": "patch two into three",
            "arguments": {"patch": "--- a/b/a.txt\n+++ b/b/a.txt\n@@ -1 +1 @@\n-two\n+three\n"},
        },
    ],
}
JSON_STEPS = json.dumps(STEPS)
YAML_STEPS = """\
scope:
  root: .
steps:
- tool: write_file
  intent: create the greeting
  arguments:
    path: greeting.txt
    content: |
      hello
    mode: "644"
- {"tool": "run", "intent": "show it", "arguments": {"command": "cat greeting.txt"}}
- {tool: delete_file, intent: clean up, arguments: {path: greeting.txt}, continue_on_error: true}
"""
CONFIGURATION = """\
builder: agent
bindings:
  agent: {adapter: command, argv: [builder, --print], environment: [API_KEY], timeout: 1h, limits: {memory: 1G}}
git: {commit: task, hooks: true, branch: current, network: false}
run: {max_attempts: 3, on_deviation: stop, check_timeout: 10m}
protected: ["*.lock", "db/**"]
environment: [LANG]
limits: {cpu: 10m, processes: 100, open_files: 256}
gates: {validator: {level: 2}}
levels: {"1": 60s}
"""
POLICY = "allow: [write_file, edit_file, run]\ndeny:\n  - delete_file\n  - move_file\n"
ROADMAP = (
    "# Roadmap\n\n## Phase 1: First\n\nText.\n\n- [ ] **Phase 2: Second** - later\n- [x] Phase 3\n\n| Phase | x |\n"
)
SUMMARY = '---\nphase: "1"\nrun: r1\nstatus: completed\ntasks: {completed: 3, failed: 0}\n---\n\n# Summary\n'
ADDED = task("T1-09", files="create `z.txt`", check="test -s z.txt", steps=[write("z.txt", "z\n")])


Material = Sequence[str]
"""Texts of plans to begin from."""


@dataclass(frozen=True, slots=True)
class Fuzzed:
    """One file of a repository, its new content, and the command to run; `name` tells the kind."""

    name: str
    project: Project
    path: Path
    data: bytes
    ask: Callable[[Container], Sequence[tuple[str, Result]]]


class Bench:
    """The repositories under test, each created on first use, and their original content."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._ledgers: dict[Path, dict[str, Entry]] = {}

    @cached_property
    def fresh(self) -> Project:
        """A project without a run."""
        project = projects.create(GitSandbox.create(self.folder / "fresh"))
        project.plan(TASKS)
        (project.folder / ".idumb" / "policy").mkdir(exist_ok=True)
        return project

    @cached_property
    def stopped(self) -> Project:
        """A project whose run can be resumed."""
        self.forget()
        project = projects.create(GitSandbox.create(self.folder / "stopped"))
        project.plan([*TASKS, task("T1-03", check="test -e later", after="T1-02", steps=[shell("true")])])
        assert project.execute("--max-attempts", "1").code == 1
        return project

    @cached_property
    def kept(self) -> Path:
        """The record of an approval of the phase that never ran."""
        self.forget()
        before = set(_state().rglob("*.json"))
        assert self.fresh.quick(*self.fresh.approving()).code == 0
        (approval_file,) = set(_state().rglob("*.json")) - before
        return approval_file

    def ledger(self, project: Project) -> dict[str, Entry]:
        if project.folder not in self._ledgers:
            self._ledgers[project.folder] = everything(project.folder, _state())
        return self._ledgers[project.folder]

    def forget(self) -> None:
        self._ledgers.clear()


TASKS = [making("T1-01", "a.txt"), making("T1-02", "b.txt", after="T1-01")]


def _state() -> Path:
    return Path(os.environ["XDG_STATE_HOME"])


def material() -> tuple[str, ...]:
    """Half of the own plans are legal ones of phase 1 in full dress, so that more of them come past the parser."""
    own = [*(ROOT / "tests" / "format" / "cases").glob("*.md"), *(ROOT / ".planning").rglob("*.md")]
    shown = (ROOT / "docs" / "plan-format.md").read_text(encoding="utf-8")
    texts = [plan_text(TASKS), *re.findall(r"^````markdown\n(.*?)^````$", shown, re.DOTALL | re.MULTILINE)] * 100
    return (*texts, *_texts(sorted(own)))


def _texts(files: Sequence[Path]) -> list[str]:
    small = [one for one in files if one.is_file() and one.stat().st_size <= _LARGEST_SEED]
    return [one.read_bytes().decode("utf-8", "replace") for one in small]


def _checked(phase: str, mode: str | None = None) -> Callable[[Container], Sequence[tuple[str, Result]]]:
    def ask(services: Container) -> Sequence[tuple[str, Result]]:
        results = [("plan.check_plan", check_plan.check(services, phase, mode=mode))]
        if "contract_hash" in results[0][1].data:
            results.append(("plan.graph", check_plan.show_graph(services, phase, _drawn)))
        return results

    return ask


def _drawn(contract: Contract, statuses: Mapping[str, str] | None) -> str:
    forms = (graphs.text, graphs.mermaid)
    return "\n".join(render(contract, statuses) for render in forms)


def plan(bench: Bench, chosen: random.Random, material: Material) -> Fuzzed:
    data = mutated(material, chosen)
    mode = chosen.choice((None, "strict"))
    return Fuzzed("mutated plan", bench.fresh, bench.fresh.folder / PLAN, data, _checked("1", mode))


def made_up(bench: Bench, chosen: random.Random, _: Material) -> Fuzzed:
    mode = chosen.choice((None, "strict"))
    return Fuzzed("made-up plan", bench.fresh, bench.fresh.folder / PLAN, generated(chosen), _checked("1", mode))


def _step_plan(bench: Bench, chosen: random.Random, _: Material) -> Fuzzed:
    seeds = [json.dumps(STEPS, indent=2), JSON_STEPS, YAML_STEPS]
    name = chosen.choice(("deploy.yaml", "deploy.json", "deploy.yml"))
    return Fuzzed("step plan", bench.fresh, bench.fresh.folder / name, mutated(seeds, chosen), _checked(name))


def configuration(bench: Bench, chosen: random.Random, _: Material) -> Fuzzed:
    path = bench.fresh.folder / ".idumb/config.yaml"
    return Fuzzed("configuration", bench.fresh, path, mutated([CONFIGURATION], chosen), _checked("1"))


def _policy(bench: Bench, chosen: random.Random, _: Material) -> Fuzzed:
    path = bench.fresh.folder / ".idumb/policy/tools.yaml"
    return Fuzzed("policy", bench.fresh, path, mutated([POLICY], chosen), _checked("1"))


def _roadmap(bench: Bench, chosen: random.Random, _: Material) -> Fuzzed:
    path = bench.fresh.folder / ".planning/ROADMAP.md"
    return Fuzzed("roadmap", bench.fresh, path, mutated([ROADMAP], chosen), _viewed)


def _report(bench: Bench, chosen: random.Random, _: Material) -> Fuzzed:
    path = bench.fresh.folder / ".planning/phases/1" / chosen.choice(("1-SUMMARY.md", "1-VERIFICATION.md"))
    return Fuzzed("report", bench.fresh, path, mutated([SUMMARY], chosen), _viewed)


def _viewed(services: Container) -> Sequence[tuple[str, Result]]:
    view = status.view(services)
    return [("status.status", Result(view)), ("status.roadmap", Result(view))]


def _signed_approval(bench: Bench, chosen: random.Random, _: Material) -> Fuzzed:
    record = json.loads(bench.kept.read_bytes())
    record["signature"] = "-----BEGIN SSH SIGNATURE-----\nAAAA\n-----END SSH SIGNATURE-----\n"
    path = bench.folder / "approval.json"

    def ask(services: Container) -> Sequence[tuple[str, Result]]:
        contract = loading.load_phase(services, "1").contract
        assert contract is not None
        phase_grants.import_signed(services, contract, str(path))
        return []

    return Fuzzed("approval file", bench.fresh, path, _approval(record, chosen), ask)


def _kept_approval(bench: Bench, chosen: random.Random, _: Material) -> Fuzzed:
    data = _approval(json.loads(bench.kept.read_bytes()), chosen)

    def ask(services: Container) -> Sequence[tuple[str, Result]]:
        contract = loading.load_phase(services, "1").contract
        assert contract is not None
        phase_grants.newest_approval(services, contract)
        phase_grants.require_approval(services, contract)
        return []

    return Fuzzed("kept approval", bench.fresh, bench.kept, data, ask)


_ODD: tuple[Any, ...] = (
    None,
    True,
    0,
    -1,
    1.5,
    10**30,
    "",
    "\ud800",
    "x" * 3000,
    [],
    {},
    [[]],
    {"": None},
    "2026",
    "\x1b",
)


def _approval(record: dict[str, Any], chosen: random.Random) -> bytes:
    """The text changed anywhere, or one value of it replaced and every digest right."""
    if chosen.random() < 0.4:
        return mutated([json.dumps(record, sort_keys=True)], chosen)
    values = record["grant"]
    into = chosen.choice((record, values, values, values["parts"], chosen.choice(list(values["parts"].values()))))
    into[chosen.choice(list(into))] = chosen.choice(_ODD)
    parts = record["grant"].get("parts") if isinstance(record["grant"], dict) else None
    for part in (parts or {}).values() if isinstance(parts, dict) else ():
        if isinstance(part, dict) and "value" in part and chosen.random() < 0.9:
            try:
                part["digest"] = canonical_json.digest(part["value"])
            except (TypeError, ValueError):
                continue
    return json.dumps(record).encode()


def _amended_file(bench: Bench, chosen: random.Random, material: Material) -> Fuzzed:
    path = bench.stopped.folder / PLAN
    data = mutated([path.read_text(encoding="utf-8")], chosen)

    def ask(services: Container) -> Sequence[tuple[str, Result]]:
        shown = [("plan.diff", changed_contract.difference(services, "1"))]
        return [*shown, ("plan.amend", amend.amend(services, amend.Request("1", from_file=True), "pat"))]

    return Fuzzed("amended plan", bench.stopped, path, data, ask)


def _amendment(bench: Bench, chosen: random.Random, material: Material) -> Fuzzed:
    kind = chosen.choice((amendment.ADD, amendment.ADD, amendment.WIDEN, amendment.DROP, amendment.DECIDE))
    seed = {amendment.ADD: ADDED, amendment.WIDEN: "modify src/x.py", amendment.DROP: "T1-02"}.get(kind, "We chose b.")
    data = mutated([seed], chosen)

    def ask(services: Container) -> Sequence[tuple[str, Result]]:
        text = data.decode("utf-8", "replace")
        task_id = chosen.choice(("T1-03", "T1-02", "T1-99"))
        if kind == amendment.WIDEN:
            change = amendment.Amendment(kind, task_id, claim=new_task.parse_claim(text))
        elif kind == amendment.DROP:
            change = amendment.Amendment(kind, task_id, text)
        else:
            change = amendment.Amendment(kind, None, text)
        return [("plan.amend", amend.amend(services, amend.Request("1", (change,)), "pat"))]

    return Fuzzed(f"amendment: {kind}", bench.stopped, bench.folder / "amendment", data, ask)


KINDS = (
    *(plan, made_up, configuration, _step_plan),
    *(plan, made_up, _policy, _step_plan),
    *(plan, _roadmap, _report, _signed_approval, _kept_approval, _amended_file, _amendment),
)


def everything(*folders: Path) -> dict[str, Entry]:
    """Every file below the folders, by its whole path; git's own files among them."""
    named = [*folders, *(folder / ".git" for folder in folders)]
    return {f"{folder}/{path}": entry for folder in named for path, entry in work_tree(folder).items()}


def carry_out(case: Fuzzed, bench: Bench, tally: Tally, name: str) -> None:
    """Run the use case, and record every forbidden effect or answer."""
    tally.cases += 1
    kept = bench.ledger(case.project)
    before = case.path.read_bytes() if case.path.exists() else None
    case.path.parent.mkdir(parents=True, exist_ok=True)
    case.path.write_bytes(case.data)
    failures = len(tally.failures)
    _ask(case, tally, name)
    present = everything(case.project.folder, _state())
    own = {str(case.path), str(case.path.parent), str(_state() / "idumb" / "signatures")}  # the last: ssh-keygen's room
    changed = sorted({path for path, _ in kept.items() ^ present.items()} - own)
    if changed or (case.path.read_bytes() != case.data):
        tally.fail(OTHER, name, f"changed: {changed or case.path}")
        bench.forget()
    if len(tally.failures) > failures:
        _keep(bench.folder.parent / "failed", name, case.data)
    if before is None:
        case.path.unlink()
    else:
        case.path.write_bytes(before)


def _keep(folder: Path, name: str, data: bytes) -> None:
    folder.mkdir(exist_ok=True)
    (folder / name.replace(" ", "-")).write_bytes(data)


def _ask(case: Fuzzed, tally: Tally, name: str) -> None:
    services = Container(str(case.project.folder), Nobody, Silent)
    gc.disable()  # as the commands do
    begun = time.process_time()
    try:
        for function, result in case.ask(services):
            _require_shown(function, result, tally, name)
            tally.note(f"{case.name}: {'found wrong' if result.failure else 'taken'}")
    except IdumbError as problem:
        _require_placed(problem, tally, name)
        tally.note(f"{case.name}: refused")
    except Exception:  # noqa: BLE001 - this is what is looked for
        tally.fail(TRACEBACK, name, traceback.format_exc()[-2000:])
    finally:
        spent = time.process_time() - begun
        gc.enable()
        services.close()
        if "log" in services.__dict__:
            services.log.database.close()
    if spent > SECONDS:
        tally.fail(SLOW, name, f"{spent:.1f} s of CPU for {len(case.data)} bytes")


def _require_shown(function: str, result: Result, tally: Tally, name: str) -> None:
    """Both forms of an answer can be made, and neither can lead a terminal astray."""
    text = answer.render(function, result.data)
    if escaping.show(text) != text:
        tally.fail(OTHER, name, f"{function} shows characters that steer or hide")
    json.dumps(answer.json_object(function, data=result.data))
    for finding in result.data.get("findings", ()):
        if finding["line"] < 1 or not finding["path"]:
            tally.fail(OTHER, name, f"a finding without a place: {finding}")


def _require_placed(problem: IdumbError, tally: Tally, name: str) -> None:
    """A code, a message, and a place for each finding."""
    if not problem.code or not problem.message or problem.code == "internal":
        tally.fail(OTHER, name, f"an error without words: {problem!r}")
    error = {"code": problem.code, "message": problem.message, "hint": problem.hint, "details": problem.details}
    json.dumps(answer.json_object("idumb", data={}, error=error))
    for finding in getattr(problem, "findings", ()):
        if finding.line < 1 or not finding.path:
            tally.fail(OTHER, name, f"a finding without a place: {finding}")


def run(size: int | None, seed: int, folder: Path, tally: Tally) -> None:
    place = folder / "work"
    place.mkdir()
    bench, sources = Bench(place), material()
    for number, kind in zip(range(size or 0), itertools.cycle(KINDS), strict=False):
        chosen = random.Random(f"{seed}/{number}")
        case = kind(bench, chosen, sources)
        carry_out(case, bench, tally, f"{case.name}, number {number} of seed {seed}")
        if number % 100 == 99:
            gc.collect()


PROGRAMME = Programme("T10", "mutated and made-up files", 150, 10_000, run, (TRACEBACK, SLOW), push=len(KINDS))
