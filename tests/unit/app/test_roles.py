"""Roles that build nothing: their bindings, where they run, and the consent that they need (R-ADAPT-1)."""

from __future__ import annotations

import itertools
import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from idumb.agents import answers
from idumb.app import role_calls
from idumb.app.consent import needs
from idumb.app.planning import phase_research, planning_rounds
from idumb.app.review import approve
from idumb.app.session import operation
from idumb.cli.opened_services import Silent
from idumb.composition.container import Container
from idumb.composition.sandboxes import LocalSandboxes
from idumb.domain.action import Answer, Decision
from idumb.domain.agent import AgentResult
from idumb.domain.errors import InputError, Refusal
from idumb.domain.proof import judgement
from idumb.domain.settings import Binding, RoleSettings, Settings
from idumb.views.terminal.ask import Nobody
from tests.support import programs
from tests.support.cases import every
from tests.support.errors import refusing
from tests.support.fixed_clock import FixedClock
from tests.support.gitrepo import GitSandbox

AGENT = """\
import os, pathlib, sys, json
told = sys.stdin.read()
pathlib.Path("made.txt").write_text("not yours")
pathlib.Path(os.environ["IDUMB_STATE_FILE"]).write_text(json.dumps({"usage": {"tokens_in": 7, "cost_usd": 0.5}}))
print(os.environ["IDUMB_ROLE"], os.environ["IDUMB_TASK"], pathlib.Path("kept.txt").read_text(), told)
"""
CONFIGURATION = """\
bindings: {thinker: {adapter: command, argv: [%s, %s]}}
roles: {planner: {binding: thinker, model: big, prompt: mine}}
"""
ASKED = role_calls.RoleRequest("planner", "phase-2", {"goal": "win"})


def start(sandbox: GitSandbox, *script: str) -> None:
    argv = json.dumps([sys.executable, *script])
    text = f"bindings: {{thinker: {{adapter: command, argv: {argv}}}}}\nroles: {{planner: {{binding: thinker}}}}\n"
    sandbox.write(".idumb/config.yaml", text)
    sandbox.commit("start")


def digest_of(services: Container, roles: Sequence[str]) -> str:
    return needs.of_roles(services, roles).digest


def ensure(services: Container, roles: Sequence[str], approve: Sequence[str] = ()) -> None:
    role_calls.ensure_consent(services, needs.of_roles(services, roles), approve=approve)


def asked(services: Container, request: role_calls.RoleRequest = ASKED) -> AgentResult:
    with operation.recorded(services, "plan-phase") as journal:
        return role_calls.ask(services, request, journal)


def agree(services: Container) -> str:
    digest = digest_of(services, ["planner"])
    ensure(services, ["planner"], approve=[digest])
    return digest


@pytest.fixture
def services(sandbox: GitSandbox) -> Container:
    sandbox.write("kept.txt", "kept")
    sandbox.commit("start")
    (sandbox.root / "agent.py").write_text(AGENT, encoding="utf-8")
    (sandbox.root / ".idumb/prompts").mkdir(parents=True)
    (sandbox.root / ".idumb/prompts/mine.md").write_text("---\ntype: prompt\n---\nGoal: $goal", encoding="utf-8")
    argv = json.dumps(sys.executable), json.dumps(str(sandbox.root / "agent.py"))  # it works in a copy elsewhere
    (sandbox.root / ".idumb/config.yaml").write_text(CONFIGURATION % argv, encoding="utf-8")
    container = Container(str(sandbox.root), Nobody, Silent)
    container.typed = ("plan-phase", "2")
    return container


def test_a_role_runs_in_a_copy_that_is_removed_afterwards(services: Container, sandbox: GitSandbox) -> None:
    """R-ADAPT-1."""
    agree(services)
    result = asked(services)
    assert result.reply == "planner phase-2 kept Goal: win\n"
    assert result.outcome == "completed"
    assert not (sandbox.root / "made.txt").exists()
    assert not (sandbox.root / ".git/idumb/rehearsals").exists()
    event = next(iter(services.log.events(kind="role.asked")))
    assert event.payload["usage"] == {"tokens_in": 7, "tokens_out": None, "cost_usd": 0.5}
    assert (event.payload["role"], event.payload["model"], event.payload["about"]) == ("planner", "big", "phase-2")
    assert services.owner.holder() is None
    assert approve.revoke(services, needs.ROLES, "me").data["withdrawn"] == 1
    with pytest.raises(Refusal, match="need your consent"):
        asked(services)


PATIENT = """\
import os, pathlib, json
calls = pathlib.Path(os.environ["HOME"], "calls")
calls.write_text((calls.read_text() if calls.exists() else "") + ".")
said = {"usage": {"tokens_in": 2}} | ({"state": "network"} if len(calls.read_text()) < 3 else {})
pathlib.Path(os.environ["IDUMB_STATE_FILE"]).write_text(json.dumps(said))
"""


def test_transient_failures_are_retried_by_the_clock_and_recorded(services: Container, sandbox: GitSandbox) -> None:
    """R-ADAPT-3: three calls, whose use is one sum; a ceiling ends the asking."""
    (sandbox.root / "agent.py").write_text(PATIENT, encoding="utf-8")
    with (sandbox.root / ".idumb/config.yaml").open("a", encoding="utf-8") as file:
        file.write("breaker: {failures: 3}\n")
    clock = FixedClock()
    services.__dict__["clock"] = clock
    agree(services)
    before = clock.seconds
    result = asked(services)
    assert (result.outcome, result.failure, result.usage.tokens_in) == ("completed", None, 6)
    assert clock.seconds - before >= 5 + 15
    payloads = [event.payload for event in services.log.events(kind="call.retried")]
    retried = [(payload["call"], payload["pause"], payload["failure"]) for payload in payloads]
    assert retried == [(1, 5, "network"), (2, 15, "network")]
    changed = [e.payload["failures"] for e in services.log.events(kind="breaker.changed")]
    assert changed == [1, 2, 0]


def test_a_role_is_not_called_beyond_its_ceiling(services: Container, sandbox: GitSandbox) -> None:
    """R-ADAPT-3."""
    path = sandbox.root / ".idumb/config.yaml"
    text = path.read_text(encoding="utf-8").replace("prompt: mine", "prompt: mine, ceiling: {cost_usd: 0.5}")
    path.write_text(text, encoding="utf-8")
    agree(services)
    assert asked(services).outcome == "completed"
    with refusing("role.ceiling") as caught:
        asked(services)
    assert "$0.50 of $0.50 used" in caught.value.message


def test_a_cloned_configuration_starts_no_unapproved_program(services: Container, sandbox: GitSandbox) -> None:
    """R-ADAPT-1."""
    digest = digest_of(services, ["planner"])
    for attempt in (lambda: asked(services), lambda: ensure(services, ["planner"], approve=())):
        with refusing("consent.missing") as caught:
            attempt()
        assert f"--approve {digest}" in (caught.value.hint or "")
    ensure(services, ["planner"], approve=[digest])
    (sandbox.root / ".idumb/prompts/mine.md").write_text("Goal: $goal!", encoding="utf-8")
    with pytest.raises(Refusal, match="need your consent"):
        asked(Container(str(sandbox.root), Nobody, Silent))


@pytest.mark.parametrize("name", ["agent.py", "my agent.py"])
def test_a_repository_script_that_a_role_starts_is_bound_by_its_bytes(sandbox: GitSandbox, name: str) -> None:
    """R-LOCK-3: like the files that builders' argument lists name; an ignored one does not count."""
    script = sandbox.write(f"tools/{name}", "print('one')")
    sandbox.write(".gitignore", "*.log")
    log = sandbox.write("agent.log", "")
    start(sandbox, f"tools/{name}", "--log=agent.log")
    services = Container(str(sandbox.root), Nobody, Silent)
    agree(services)
    log.write_text("it was asked", encoding="utf-8")
    assert asked(services).reply == "one\n"
    script.write_text("print('two')", encoding="utf-8")
    with refusing("consent.missing") as caught:
        asked(services)
    assert f"uses tools/{name}, sha256 " in caught.value.details["evidence"][0]


def test_consent_at_the_terminal_covers_the_script_that_was_shown(sandbox: GitSandbox) -> None:
    """R-LOCK-3: not to a replacement that appeared while the question waited."""
    script = sandbox.write("agent.py", "print('one')")
    start(sandbox, "agent.py")

    class Slow:
        interactive = True

        def ask(self, decision: Decision) -> Answer | None:
            script.write_text("print('two')", encoding="utf-8")
            return Answer(decision.id, "run", "me")

    services = Container(str(sandbox.root), Slow, Silent)
    ensure(services, ["planner"], approve=())
    with refusing("consent.missing") as caught:
        asked(services)
    assert caught.value.details["evidence"][0].endswith("; changed since you agreed: planner (agent.py)")
    script.write_text("print('one')", encoding="utf-8")
    assert asked(services).reply == "one\n"


def test_changes_since_agents_were_approved_are_named(
    sandbox: GitSandbox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """R-LOCK-3: by a program's paths, and by the names of all else."""
    config = "bindings: {t: {adapter: command, argv: [coder]}}\nroles: {planner: {binding: t}}\nprofiles: {p: MODELS}\n"
    place = sandbox.write(".idumb/config.yaml", config.replace("MODELS", "{planner: big}") + "profile: p\n")
    sandbox.commit("start")

    def at(folder: str) -> tuple[Container, str]:
        program = programs.script(tmp_path / folder / "coder")
        monkeypatch.setenv("PATH", str(program.parent), prepend=":")
        return Container(str(sandbox.root), Nobody, Silent), str(program)

    services, one = at("one")
    digest = agree(services)
    place.write_text(place.read_text(encoding="utf-8").replace("big", "small"), encoding="utf-8")
    services, two = at("two")
    words = f"changed since you agreed: planner (model, program: was {one}, is {two})"
    with pytest.raises(Refusal) as caught:
        ensure(services, ["planner"], approve=[digest])
    assert words in caught.value.message
    with pytest.raises(Refusal) as caught:
        ensure(services, ["planner"])
    (line,) = caught.value.details["evidence"]
    assert line.endswith(f"; {words}")


def test_an_unbound_role_is_refused_with_the_configuration_to_write(services: Container) -> None:
    """R-ADAPT-1."""
    assert role_calls.binding_of(services, "planner") == "thinker"
    assert role_calls.binding_of(services, "skeptic") is None
    with refusing("role.unbound") as caught:
        asked(services, role_calls.RoleRequest("skeptic", "phase-2", {}))
    assert "roles: {skeptic: {binding: NAME}}" in (caught.value.hint or "")


def test_a_template_is_never_read_through_a_link(services: Container, sandbox: GitSandbox, tmp_path: Path) -> None:
    """R-ADAPT-1."""
    (tmp_path / "private.md").write_text("a secret", encoding="utf-8")
    (sandbox.root / ".idumb/prompts/mine.md").unlink()
    with pytest.raises(InputError, match=r"\.idumb/prompts/mine\.md does not exist"):
        services.present_settings()
    (sandbox.root / ".idumb/prompts/mine.md").symlink_to(tmp_path / "private.md")
    with pytest.raises(InputError, match="it is a symbolic link"):
        services.present_settings()
    (sandbox.root / ".idumb/prompts/mine.md").unlink()
    (sandbox.root / ".idumb/prompts").rmdir()
    (sandbox.root / ".idumb/prompts").symlink_to(tmp_path)
    with pytest.raises(InputError, match="it is a symbolic link"):
        services.present_settings()


def test_a_role_s_own_model_overrides_its_profile_s_and_its_binding_s() -> None:
    """R-ADAPT-1."""
    bindings = {"a": Binding("a", "x", timeout=60, model="of-binding")}
    profiles = {"budget": {"planner": "of-profile"}}
    plain = Settings(bindings=bindings, roles={"planner": RoleSettings("a")}, profiles=profiles)
    chosen = Settings(bindings=bindings, roles={"planner": RoleSettings("a")}, profiles=profiles, profile="budget")
    own = Settings(bindings=bindings, roles={"planner": RoleSettings("a", "own", timeout=5)}, profiles=profiles)
    models = [binding.role("planner").model for binding in (plain, chosen, own)]
    assert models == ["of-binding", "of-profile", "own"]
    assert [binding.role("planner").timeout for binding in (plain, own)] == [60, 5]
    assert Settings(builder="a", bindings=bindings).role("builder").binding == "a"


CONFINED = """\
import os, pathlib
for place in ("made.txt", os.environ["TMPDIR"] + "/x"):
    try:
        pathlib.Path(place).write_text("x")
        print("wrote", os.path.basename(place))
    except OSError:
        print("kept out of", os.path.basename(place))
"""


def test_a_role_in_a_sandbox_writes_only_in_scratch_and_its_level_is_printed_and_recorded(
    sandbox: GitSandbox, services: Container
) -> None:
    if reason := LocalSandboxes().support().no_bwrap:
        pytest.skip(reason)
    (sandbox.root / "agent.py").write_text(CONFINED, encoding="utf-8")
    with (sandbox.root / ".idumb/config.yaml").open("a", encoding="utf-8") as file:
        file.write("sandbox: bwrap\n")
    notes: list[str] = []

    class Noting(Silent):
        def note(self, text: str) -> None:
            notes.append(text)

    services = Container(str(sandbox.root), Nobody, Noting)
    agree(services)
    assert asked(services).reply == "kept out of made.txt\nwrote x\n"
    event = next(iter(services.log.events(kind="role.asked")))
    assert event.payload["sandbox"] == "bwrap"
    assert notes == ["Sandbox of the planner: bwrap."]


def test_a_role_that_must_be_in_a_sandbox_does_not_start_without_one(services: Container, sandbox: GitSandbox) -> None:
    """An adapter that nothing can limit."""
    text = "sandbox: bwrap\nbindings: {thinker: {adapter: handoff}}\nroles: {planner: {binding: thinker}}\n"
    (sandbox.root / ".idumb/config.yaml").write_text(text, encoding="utf-8")
    services = Container(str(sandbox.root), Nobody, Silent)
    agree(services)
    with refusing("agent.no-sandbox", "idumb cannot put thinker in a sandbox"):
        asked(services)


def _objects(schema: Any) -> Iterator[dict[str, Any]]:
    if isinstance(schema, dict):
        yield from [schema] if schema.get("type") == "object" else []
        yield from itertools.chain.from_iterable(map(_objects, schema.values()))
    elif isinstance(schema, list):
        yield from itertools.chain.from_iterable(map(_objects, schema))


@every("schema", [answers.VERDICT, judgement.SCHEMA, planning_rounds.VERDICT, phase_research._QUESTIONS_SCHEMA])
def test_codex_takes_the_schema_of_each_reply(schema: Mapping[str, Any]) -> None:
    for each in _objects(dict(schema)):
        assert (each["additionalProperties"], each["required"]) == (False, list(each["properties"]))
