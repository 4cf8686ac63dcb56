"""The configuration file: its settings and its error messages (R-OPS-4, R-ADAPT-1)."""

from __future__ import annotations

import re
from pathlib import Path

import jsonschema
import pytest
from msgspec import to_builtins
from msgspec.structs import fields

from idumb.domain.errors import InputError
from idumb.domain.permissions import SandboxSettings
from idumb.domain.settings import (
    Binding,
    CheckoutSettings,
    CheckSettings,
    GitSettings,
    Limits,
    RunSettings,
    Settings,
)
from idumb.markdown import configuration, setting_types
from idumb.markdown.syntax import tree, value_types
from idumb.markdown.syntax.inline import Text
from idumb.markdown.syntax.source import Source
from tests.support import example_files
from tests.support.cases import every

HERE = Path(__file__).parent
FULL = (HERE / "full-config.yaml").read_text(encoding="utf-8")


def parsed(text: str) -> Settings:
    settings, findings = configuration.read(text.encode())
    assert findings == ()
    assert settings is not None
    return settings


def problems(text: str) -> list[str]:
    settings, findings = configuration.read(text.encode())
    assert settings is None
    return [f"{f.place}:{f.column} {f.field}: {f.message} {f.fix}" for f in findings]


def test_every_setting_can_be_given() -> None:
    settings = parsed(FULL)
    example_files.compare_json(HERE / "full-config.json", to_builtins(settings))
    assert settings.digest() != Settings().digest()


@every("text", ["ask: {timeout: 5m}", "snapshot: {limit: 1000, keep: 7}"])
def test_settings_that_do_not_affect_a_run_change_nothing_that_consent_is_bound_to(text: str) -> None:
    """R-ASK-3: a contract approved before the change stays approved."""
    assert parsed(text).digest() == Settings().digest()
    assert parsed(text).deciding() == Settings().deciding()


def test_a_configured_idle_timeout_overrides_the_adapter_s_own() -> None:
    """R-ADAPT-2."""
    unset, run = parsed("bindings: {a: {adapter: claude}}"), parsed("run: {idle_timeout: 1h}")
    assert (unset.idle_timeout("a", 900), unset.idle_timeout("a", None)) == (900.0, 3600.0)
    assert run.idle_timeout("a", 900) == 3600.0
    own = parsed("run: {idle_timeout: 1h}\nbindings: {a: {adapter: claude, idle_timeout: 2m}}")
    assert own.idle_timeout("a", 900) == 120.0


def test_a_default_value_in_the_configuration_changes_no_contract() -> None:
    """R-LOCK-1."""
    unset = parsed("checks: {home: user}").digest()
    assert parsed("checks: {home: user, control: beside}").digest() == unset
    assert parsed("checks: {home: user, control: off}").digest() != unset
    assert parsed("checks: {control: off}").checks == CheckSettings(control="off")


@every("text", ["", "# nothing yet\n", "---\n", "~", "git:\nrun: {halt_after: ~}\nchecks: {}\n"])
def test_settings_missing_from_the_file_have_their_defaults(text: str) -> None:
    assert parsed(text) == Settings()


def test_the_builder_can_be_set_under_roles_or_by_its_own_setting() -> None:
    text = "roles: {builder: {binding: a}}\nbindings: {a: {adapter: x}}\n"
    assert parsed(text).builder == "a"
    assert parsed(f"builder: a\n{text}").builder == "a"


def test_an_unknown_key_gets_the_nearest_one_suggested() -> None:
    assert problems("biulder: steps\n") == [
        ".idumb/config.yaml:1:1 biulder: Unknown key `biulder` in the configuration did you mean `builder`?"
    ]
    assert "did you mean `max_attempts`?" in problems("run:\n  max_attempt: 3\n")[0]


def test_every_mistake_is_reported_at_once_with_its_line() -> None:
    findings = problems(
        "git:\n  commit: tsak\n  hooks: yes\nrun:\n  max_attempts: 0\n  check_timeout: soon\nnonsense: 1\n"
    )
    assert [line.split(" ")[0] for line in findings] == [
        ".idumb/config.yaml:2:11",
        ".idumb/config.yaml:3:10",
        ".idumb/config.yaml:5:17",
        ".idumb/config.yaml:6:18",
        ".idumb/config.yaml:7:1",
    ]
    assert "did you mean `task`?" in findings[0]


def test_a_mistake_is_an_error_with_the_accepted_values() -> None:
    cases: list[tuple[str, str]] = [
        ("builder: coder\nbindings: {codec: {adapter: command, argv: [x]}}\n", "did you mean `codec`?"),
        ("builder: nobody\n", "define nobody under `bindings`"),
        ("validator: steps\n", "must be one of human"),
        ("bindings: {a: {argv: [x]}}\n", "adapter"),
        ("bindings: {a: {adapter: command}}\n", "argv"),
        ("bindings: {a: {adapter: command, argv: run it}}\n", "a list"),
        ("bindings: {steps: {adapter: command, argv: [x]}}\n", "other than steps, human, editor"),
        ("snapshot: {keep: 9999999}\n", "a whole number from 1 to 36500"),
        ("bindings: {a b: {adapter: x}}\n", "without spaces"),
        ("bindings: {a: {adapter: x, options: 3}}\n", "keys with values"),
        ("bindings: {a: {adapter: x, environment: [A=1]}}\n", "without its value"),
        ("environment: [IDUMB_TASK]\n", "name of an environment variable"),
        ("protected: [../x]\n", "leads out of the workspace"),
        ("gates: {syntax: 2}\n", "`gates.syntax` must be keys with values, such as `level`"),
        ("run: {max_attempts: '3'}\n", "whole number"),
        ("limits: {memory: lots}\n", "a size such as 512M"),
        ("limits: {memory: 0}\n", "a size such as 512M"),
        ("limits: {ram: 4G}\n", "Unknown key `ram` in `limits`"),
        ("bindings: {a: {adapter: x, limits: {cpu: soon}}}\n", "a time such as 90s"),
        ("run: {idle_timeout: none}\n", "a time such as 90s"),
        ("gates: {sizes: {level: 1}}\n", "did you mean `size`?"),
        ("gates: {validator: {level: 3}}\n", "a level: 0, 1 or 2"),
        ("gates: {validator: {timeout: 10m}}\n", "between 30s and 300s at level 1"),
        ("gates: {validator: {level: 0, timeout: 2m}}\n", "level 0 has no timeout"),
        ("gates: {criteria: {timeout: 40s}}\n", "Unknown key `timeout` in `gates.criteria`"),
        ("gates: {builder: {timeout: 40s}}\n", "Unknown key `timeout` in `gates.builder`"),
        ("gates: {syntax: {threshold: 40}}\n", "Unknown key `threshold` in `gates.syntax`"),
        ("gates: {own: {run: a, entry_point: a.b}}\n", "absent beside `run`"),
        ("gates: {Own_1: {run: a}}\n", "a name of small letters"),
        ("levels: {1: 10s}\n", "between 30s and 300s"),
        ("levels: {0: 10s}\n", "Unknown key `0` in `levels`"),
        ("roles: {bilder: {}}\n", "did you mean `builder`?"),
        ("roles: {planner: {binding: nobody}}\n", "define nobody under `bindings`"),
        ("roles: {planner: {binding: steps}}\n", "defined under `bindings`"),
        ("roles: {planner: {prompt: ../../x}}\n", "the name of a template in .idumb/prompts/"),
        ("roles: {planner: {ceiling: {cost_usd: 0}}}\n", "an amount of dollars above 0"),
        ("roles: {validator: {timeout: 40s}}\n", "Unknown key `timeout` in `roles.validator`"),
        (
            "builder: a\nroles: {builder: {binding: b}}\nbindings: {a: {adapter: x}, b: {adapter: x}}\n",
            "`roles.builder.binding` must be a, as `builder` says",
        ),
        ("profile: cheap\n", "define cheap under `profiles`"),
        ("profile: budgte\nprofiles: {budget: {}}\n", "did you mean `budget`?"),
        ("profiles: {budget: {bilder: x}}\n", "Unknown key `bilder` in `profiles.budget`"),
        ("ceilings: {phase: {}}\n", "Unknown key `phase` in `ceilings`"),
        ("builder: &a x\nvalidator: *a\n", "anchors"),
        ("builder: x\nbuilder: y\n", "first used on line 1"),
        ("builder: [\n", "Invalid YAML"),
        ("- a\n", "keys with values"),
        ("builder: ''\n", "a text"),
    ]
    assert not [(text, words) for text, words in cases if not any(words in line for line in problems(text))]


def test_bytes_that_are_not_utf8_are_refused() -> None:
    settings, findings = configuration.read(b"builder: \xff\n")
    assert settings is None
    assert findings[0].code == "plan.not-utf-8"


def test_a_space_that_is_none_to_a_parser_is_shown() -> None:
    """Browsers and word processors write them, and nobody sees them."""
    (finding,) = configuration.read("builder:\u202fhuman\n".encode())[1]
    assert finding.found == "builder:\\u202fhuman"
    (finding,) = configuration.read("builder: human\xa0\n".encode())[1]
    assert (finding.found, finding.fix) == ("human\\u00a0", "did you mean `human`?")


def test_an_open_merge_conflict_is_the_only_finding() -> None:
    """Each side alone is wrong YAML, or both are read."""
    for text in (
        "<<<<<<< HEAD\nbuilder: human\n=======\nbuilder: editor\n>>>>>>> b\n",
        "# a\r\n>>>>>>> b\r\nrun: [\r\n",
    ):
        settings, findings = configuration.read(text.encode())
        assert (settings, [finding.code for finding in findings]) == (None, ["plan.conflict"])


def test_a_repository_without_configuration_has_the_defaults(tmp_path: Path) -> None:
    assert configuration.load(str(tmp_path)) == Settings()


def test_loading_raises_one_error_with_all_findings(tmp_path: Path) -> None:
    (tmp_path / ".idumb").mkdir()
    (tmp_path / ".idumb/config.yaml").write_text("biulder: x\nvalidator: y\n", encoding="utf-8")
    with pytest.raises(InputError) as caught:
        configuration.load(str(tmp_path))
    assert caught.value.code == "config.invalid"
    assert len(caught.value.findings) == 2
    assert caught.value.message.startswith(".idumb/config.yaml:1: Unknown key `biulder`")
    assert caught.value.hint == "Did you mean `builder`?"


def test_an_unreadable_file_is_an_input_error(tmp_path: Path) -> None:
    (tmp_path / ".idumb/config.yaml").mkdir(parents=True)
    with pytest.raises(InputError, match="cannot be read"):
        configuration.load(str(tmp_path))


def test_settings_behind_a_broken_link_or_in_a_yml_file_are_not_taken_for_no_settings(tmp_path: Path) -> None:
    """Without them more would be allowed: every path is unprotected, every tool may run."""
    for path, read in ((configuration.PATH, configuration.load), (configuration.POLICY_PATH, configuration.policy)):
        place = tmp_path / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.symlink_to(tmp_path / "nowhere")
        with pytest.raises(InputError, match=f"{path} cannot be read") as caught:
            read(str(tmp_path))
        assert caught.value.hint == f"ls -l {path}"
        place.unlink()
        read(str(tmp_path))
        place.with_suffix(".yml").touch()
        with pytest.raises(InputError, match=f"{path.removesuffix('.yaml')}.yml is not read") as caught:
            read(str(tmp_path))
        assert str(caught.value.hint).startswith(f"Move them to {path}")
        place.with_suffix(".yml").unlink()


def test_the_page_explains_every_setting_with_its_default() -> None:
    page = (Path(__file__).parents[2] / "docs/configuration.md").read_text(encoding="utf-8")
    rows = dict(re.findall(r"^\| `([\w.<>]+)` \|.*\| (.*?) \|$", page, re.MULTILINE))
    names = {f.name for f in fields(Settings)} - {"bindings", "git", "run", "limits", "prompts"}
    names |= {f"limits.{f.name}" for f in fields(Limits)} | {f"checks.{f.name}" for f in fields(CheckSettings)}
    names |= {f"checkout.{f.name}" for f in fields(CheckoutSettings)}
    names |= {f"sandbox.{f.name}" for f in fields(SandboxSettings)}
    names |= {f"git.{f.name}" for f in fields(GitSettings)} | {f"run.{f.name}" for f in fields(RunSettings)}
    names |= {f"bindings.<name>.{f.name}" for f in fields(Binding)} - {"bindings.<name>.name"}
    assert set(rows) == names
    for section, default in (("git", GitSettings()), ("run", RunSettings()), ("limits", Limits())):
        for field in fields(default):
            value = getattr(default, field.name)
            shown = "none" if value is None else str(value).lower()
            assert shown in rows[f"{section}.{field.name}"]


def test_the_schema_for_editors_accepts_what_the_reader_accepts() -> None:
    validator = jsonschema.Draft202012Validator(setting_types.schema())
    wrong = ("biulder: x", "run: {max_attempts: 0}", "git: {commit: tsak}", "bindings: {steps: {adapter: x}}", "ask: 3")
    for text in (FULL, "sandbox: auto", "gates: {mine: {run: make}, types: {run: [a, b]}}", *wrong):
        node = tree.read(Text(text), Source(text, ""), "")
        assert node is not None
        refused = [text for _ in validator.iter_errors(value_types.anything(node))][:1]
        assert (bool(refused), configuration.read(text.encode())[0] is None) == (text in wrong, text in wrong), text


def test_a_key_is_located_at_its_line_and_a_missing_one_where_it_belongs(tmp_path: Path) -> None:
    (tmp_path / ".idumb").mkdir()
    place = tmp_path / ".idumb/config.yaml"
    place.write_text(FULL, encoding="utf-8")
    assert configuration.position(str(tmp_path), "bindings", "coder") == (4, 3)
    assert configuration.position(str(tmp_path), "bindings", "coder", "options", "names") == (13, 25)
    assert configuration.position(str(tmp_path), "bindings", "nobody") == (3, 1)
    assert configuration.position(str(tmp_path), "builder", "adapter") == (1, 1)
    for text in ("bindings: [", "- a\n", "", "\x00"):
        place.write_text(text, encoding="utf-8")
        assert configuration.position(str(tmp_path), "bindings", "coder") == (1, 1)
    place.unlink()
    assert configuration.position(str(tmp_path), "bindings", "coder") == (1, 1)
