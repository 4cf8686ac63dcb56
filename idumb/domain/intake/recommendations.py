"""What would make a valid plan better: checks, tests, smaller tasks, dependencies, and files that history names.

A recommendation is advice. It never refuses a plan, and it depends only on the plan and on the given commits.
"""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

from idumb import lazy_pattern
from idumb.domain import paths, wording
from idumb.domain.contract import Contract, proofs
from idumb.domain.intake.rule import short
from idumb.domain.plans.plan import CHECK, STEPS, VERIFY, Plan, Task
from idumb.domain.proof import ledger, test_counts
from idumb.lazy_dataclass import dataclass

NO_CHECK = "recommend.check"
NO_TEST = "recommend.test"
TOO_LARGE = "recommend.split"
UNORDERED = "recommend.order"
TOGETHER = "recommend.files"

MOST_SECONDS = 2 * 3600
MOST_FILES = 8
MOST_CRITERIA = 7
MOST_COMPANIONS = 3
LEAST_TOGETHER = 3
MOST_GLOBS = 200
MOST_EARLIER = 50
"""Limits of what is compared, so that a phase of 10,000 tasks is answered in seconds."""
LARGEST_COMMIT = 30
"""A commit of more files says nothing about which of them belong together."""

APPEND, ADD_FIELD, REPLACE_FIELD, ADD_VALUE, RUN = "append", "add-field", "replace-field", "add-value", "run"
MOVE = "move"
"""What an edit does: append to a line, add or replace a field of a task, add a value to one, run a command, or move
values of a field to a new task."""

_OWN = (".idumb/", ".planning/")
_MANIFESTS = (
    ("pyproject.toml", "pytest -q"),
    ("setup.py", "pytest -q"),
    ("package.json", "npm test"),
    ("go.mod", "go test ./..."),
    ("Cargo.toml", "cargo test"),
    ("Makefile", "make test"),
)
_SPAN = lazy_pattern.compile(r"`([^`]+)`")
# How a command begins that checks something; a word such as `make` or `test` needs more to be a command.
_PROGRAM = lazy_pattern.compile(
    r"(?:cd [^\s&]+ && )?(?:[A-Z_]+=\S+ )*(?:\.?/?[\w./-]+/)?(?:(?:python3?|pytest|tox|uv|ruff|mypy|npm|npx|pnpm|yarn"
    r"|bunx?|deno|cargo|bash|sh|grep|rg|jq|mvn|gradlew?|dotnet|php|composer|ruby|bundle|rspec|rake|flutter|terraform"
    r"|docker) |node [\w./-]+\.\w|dart \w+ |swift (?:test|build)|go (?:test|build|vet|run) |make [\w.-]+$|test -\w "
    r"|git (?:diff|grep|log|ls-files|show|status)\b)"
)
_SENTENCE = lazy_pattern.compile(
    r"\s(?:should|must|exits?|pass(?:es)?|succeeds?|returns?|shows?|prints?|reports?|works?|runs?|—|→|->)(?:\s|$)|\.\s"
)
MANIFESTS = tuple(name for name, _ in _MANIFESTS)


@dataclass(frozen=True, slots=True)
class Edit:
    """`action` is one of the constants above; `line` is of the field, criterion or task that it concerns."""

    action: str
    path: str
    line: int
    task: str | None
    field: str
    text: str


@dataclass(frozen=True, slots=True)
class Recommendation:
    """`why` are the facts behind the message."""

    code: str
    message: str
    edit: Edit
    why: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Facts:
    """`commits` are the changed paths of recent commits, the newest first; `exists` tells whether a path exists."""

    contract: Contract
    commits: Sequence[Collection[str]] = ()
    exists: Callable[[str], bool] = lambda _: False

    @property
    def pairs(self) -> Iterator[tuple[Plan, Task]]:
        return ((plan, task) for plan in self.contract.plans for task in plan.tasks)


def recommend(facts: Facts) -> tuple[Recommendation, ...]:
    """Return the recommendations for a phase, by kind, each kind in the order of the plans."""
    rules = (missing_checks, untested_requirements, oversized_tasks, unordered_tasks, changed_together)
    return tuple(each for rule in rules for each in rule(facts))


def missing_checks(facts: Facts) -> Iterator[Recommendation]:
    """Recommend a command for each task that no command proves."""
    for plan, task in facts.pairs:
        proven = proofs(task)
        if task.is_human or task.verify or task.tests or not {CHECK, VERIFY, STEPS}.isdisjoint(proven.values()):
            continue
        command = suggested_check(task, facts.exists)
        unmarked = next((c for c in task.acceptance if c.command is None and c.span is not None), None)
        kinds = ", ".join(dict.fromkeys(proven.values()))
        edit = _field(plan, task, "Verify", "verify", f"`{command}`")
        if plan.is_foreign:
            edit = _foreign_check(plan, task, command)
        elif unmarked is not None and unmarked.span is not None and proven[unmarked.id] == "unproven":
            edit = Edit(APPEND, plan.path, unmarked.span.line, task.id, "acceptance", f" — check: `{command}`")
        message = f"No command proves {task.id}, {short(task.title)}."
        yield Recommendation(NO_CHECK, message, edit, (f"its criteria: {kinds or 'none'}",))


def suggested_check(task: Task, exists: Callable[[str], bool]) -> str:
    """Return a command that could prove a task.

    It is a command that its criteria name, its own tests, the project's tests, or that its file exists.
    """
    stated = next(filter(None, (_stated_command(criterion.text) for criterion in task.acceptance)), None)
    if stated is not None:
        return stated
    written = ledger.named_paths(task.files)
    for path in written:
        name = path.rpartition("/")[2]
        if name.endswith(".py") and (name.startswith("test_") or name.endswith("_test.py")):
            return f"pytest -q {shlex.quote(path)}"
        if name.endswith("_test.go"):
            return f"go test {shlex.quote('./' + path.rpartition('/')[0])}"
        if ".test." in name or ".spec." in name:
            return f"npm test -- {shlex.quote(path)}"
    command = next((command for manifest, command in _MANIFESTS if exists(manifest)), None)
    created = next((claim.path for claim in task.files or () if claim.verb == "create"), None)
    return command or (f"test -s {shlex.quote(created)}" if created else "COMMAND")


def _stated_command(words: str) -> str | None:
    """Return the command that a criterion consists of, or that it has in backticks; None without one."""
    whole = words.removeprefix("Run:").removeprefix("Run").strip()
    named = _SPAN.findall(whole) if "`" in whole else [] if _SENTENCE.search(whole) else [whole]
    return next((command for command in named if _PROGRAM.match(command) and " " in command), None)


def untested_requirements(facts: Facts) -> Iterator[Recommendation]:
    """Recommend a test for each requirement that no test program is run for."""
    phase = facts.contract.phase
    by_requirement: dict[str, list[tuple[Plan, Task]]] = {}
    for owner, task in facts.pairs:
        for id in () if task.is_human else task.requirements:
            by_requirement.setdefault(id, []).append((owner, task))
    for plan in facts.contract.plans:
        if plan.is_foreign:
            continue  # every task serves every requirement there, and no field is for tests
        for id, text in plan.requirements.items():
            serving = by_requirement.get(id, [])
            if any(task.tests or any(map(test_counts.runs_tests, _commands(task))) for _, task in serving):
                continue
            about = f"{id}: {short(text)}" if text else id
            if not serving:
                words = [
                    "idumb",
                    "plan",
                    "add-task",
                    phase,
                    "--requirement",
                    id,
                    "--task",
                    text or id,
                    "FILES",
                    "COMMAND",
                ]
                edit = Edit(RUN, plan.path, _line(plan, None), None, "requirements", shlex.join(words))
                yield Recommendation(NO_TEST, f"No task serves {about}.", edit)
                continue
            owner, last = serving[-1]
            command = suggested_check(last, facts.exists)
            test = f"`{command}` — fails before, passes after: {wording.one_line(text) or id}"
            names = wording.listed(task.id for _, task in serving)
            message = f"No test shows {about}."
            yield Recommendation(NO_TEST, message, _field(owner, last, "Tests", "tests", test), (f"served by {names}",))


def _commands(task: Task) -> tuple[str, ...]:
    return (*(c.command for c in task.acceptance if c.command), *task.verify)


def oversized_tasks(facts: Facts) -> Iterator[Recommendation]:
    """Recommend to split tasks with a long estimate, many files or many criteria."""
    for plan, task in facts.pairs:
        written = ledger.written_claims(task.files or ())
        reasons = [
            f"{number} {name}, more than {most}"
            for number, name, most in (
                (len(written), "files", MOST_FILES),
                (len(task.acceptance), "criteria", MOST_CRITERIA),
            )
            if number > most
        ]
        if task.estimate_seconds > MOST_SECONDS:
            reasons.insert(0, f"an estimate of {task.estimate_seconds / 3600:.3g} hours, more than 2")
        if not reasons or task.is_human:
            continue
        later = ", ".join(f"{claim.verb} {claim.path}" for claim in written[(len(written) + 1) // 2 :])
        rest = "\n".join(criterion.text for criterion in task.acceptance[(len(task.acceptance) + 1) // 2 :])
        command = ["idumb", "plan", "add-task", facts.contract.phase, "--depends-on", task.id]
        command += ["--task", f"The second part of {task.id}", later or "FILES", "COMMAND"]
        action, text = (MOVE, later or rest) if plan.is_foreign else (RUN, shlex.join(command))
        edit = Edit(action, plan.path, _line(plan, task), task.id, "files" if later or not rest else "acceptance", text)
        message = f"{task.id} is large. Move a part of it to a new task."
        yield Recommendation(TOO_LARGE, message, edit, tuple(reasons))


def unordered_tasks(facts: Facts) -> Iterator[Recommendation]:
    """Recommend a dependency between tasks that change the same file in no order."""
    bits, before = _ancestors(facts.contract)
    shared = _shared_paths(facts)
    for plan, task in facts.pairs:
        for earlier, common in shared[task.id].items():
            if before[task.id] & bits[earlier] or before[earlier] & bits[task.id]:
                continue
            depends_on = ", ".join((*task.depends_on, earlier))
            edit = _field(plan, task, "Depends on", "depends_on", depends_on)
            message = f"{earlier} and {task.id} change the same file, but neither depends on the other."
            yield Recommendation(UNORDERED, message, edit, (f"both change {wording.listed(common)}",))


def _ancestors(contract: Contract) -> tuple[Mapping[str, int], Mapping[str, int]]:
    """Return the bit of each task, and the bits of all tasks that must end before it."""
    bits = {task: 1 << number for number, task in enumerate(contract.order)}
    before: dict[str, int] = {}
    for task in contract.order:
        before[task] = 0
        for direct in contract.dependencies[task]:
            before[task] |= bits[direct] | before[direct]
    return bits, before


def _shared_paths(facts: Facts) -> Mapping[str, Mapping[str, list[str]]]:
    """Return for each task the earlier tasks that write the same paths; a glob writes the paths that it matches."""
    writers: dict[str, list[str]] = {}
    for _, task in facts.pairs:
        for path in ledger.written_paths(task.files):
            writers.setdefault(path, []).append(task.id)
    for glob in [path for path in writers if paths.has_wildcard(path)][:MOST_GLOBS]:
        covers, globbing = paths.cover([glob]), tuple(writers[glob])
        for path in [path for path in writers if path != glob and covers(path)]:
            writers[path] = [*writers[path], *globbing]
    position = {task.id: number for number, (_, task) in enumerate(facts.pairs)}
    shared: dict[str, dict[str, list[str]]] = {id: {} for id in position}
    for path, ids in writers.items():
        ordered = sorted(dict.fromkeys(ids), key=position.__getitem__)
        for number, id in enumerate(ordered):
            for earlier in ordered[max(0, number - MOST_EARLIER) : number]:
                shared[id].setdefault(earlier, []).append(path)
    return shared


def changed_together(facts: Facts) -> Iterator[Recommendation]:
    """Recommend files that usually changed in the same commits as the files of a task, and that no task declares."""
    is_declared = paths.cover({claim.path for _, task in facts.pairs for claim in task.files or ()})
    by_path: dict[str, list[frozenset[str]]] = {}
    for commit in facts.commits:
        for path in commit if len(commit) <= LARGEST_COMMIT else ():
            by_path.setdefault(path, []).append(frozenset(commit))
    for plan, task in facts.pairs:
        companions = _companions(ledger.named_paths(task.files), by_path)
        new = [
            (path, words)
            for path, words in companions
            if not is_declared(path) and not path.startswith(_OWN) and facts.exists(path)
        ]
        for path, words in new[:MOST_COMPANIONS]:
            span = task.spans.get("files")
            line = span.line if span else _line(plan, task)
            value = path if plan.is_foreign else f"modify `{path}`"
            edit = Edit(ADD_VALUE, plan.path, line, task.id, "files", value)
            yield Recommendation(TOGETHER, f"{path} may have to change with {task.id}.", edit, (words,))


def _companions(written: Iterable[str], by_path: Mapping[str, list[frozenset[str]]]) -> list[tuple[str, str]]:
    """Return the paths that were in most commits of one of these files, the most frequent first, with the facts."""
    best: dict[str, tuple[int, str]] = {}
    for path in written:
        with_path = by_path.get(path, [])
        for other, count in Counter(name for commit in with_path for name in commit if name != path).items():
            usual = count >= LEAST_TOGETHER and 2 * count > len(with_path)
            if usual and count > best.get(other, (0, ""))[0]:
                best[other] = (count, f"in {count} of the last {len(with_path)} commits that changed {path}")
    return [(path, words) for path, (_, words) in sorted(best.items(), key=lambda item: (-item[1][0], item[0]))]


def _field(plan: Plan, task: Task, label: str, key: str, value: str) -> Edit:
    """Return the edit that sets a field, in the notation of the task."""
    span = None if plan.is_foreign else task.spans.get(key)
    action, line = (REPLACE_FIELD, span.line) if span is not None else (ADD_FIELD, _line(plan, task))
    if task.notation in ("fence", "list"):
        text = f"{key}: [{value}]" if key == "depends_on" else f"{key}:\n  - {_yaml(value)}"
    elif plan.is_foreign:
        text = f"**{label.title()}:** {value}"
    else:
        indent = "  " if task.notation == "checklist" else ""
        text = f"{indent}- **{label}:** {value}"
    return Edit(action, plan.path, line, task.id, key, text)


def _foreign_check(plan: Plan, task: Task, command: str) -> Edit:
    """Return the edit that adds a check to a task of another tool's plan, in the form of that tool."""
    if task.notation != "tag":
        return _field(plan, task, "Verify", "verify", f"`{command}`")
    text = f"  <verify><automated>{command}</automated></verify>"
    return Edit(ADD_FIELD, plan.path, _line(plan, task), task.id, "verify", text)


def _yaml(value: str) -> str:
    """Return a single-quoted scalar."""
    return "'" + value.replace("'", "''") + "'"


def _line(plan: Plan, task: Task | None) -> int:
    span = plan.spans.get("requirements") if task is None else task.span
    return span.line if span is not None else 1
