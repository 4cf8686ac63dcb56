"""The line that a message proposes is right for a configuration that sets the section already."""

from __future__ import annotations

from idumb.domain import project_files
from idumb.domain.settings import CheckoutSettings, CheckSettings
from idumb.markdown import configuration

PRESENT = CheckoutSettings(provide=("data.log",), prepare=("make: deps",), limit=8)


def test_the_line_keeps_what_is_set() -> None:
    home = project_files.adding("checks", CheckSettings(control="off"), {"home": "user"})
    assert home == "replace `checks` in .idumb/config.yaml by `checks: {home: user, control: off}`"
    line = "checkout: {provide: [data.log, b c.log], prepare: ['make: deps'], limit: 8}"
    provided = project_files.adding("checkout", PRESENT, {"provide": ["b c.log", "data.log"]})
    assert provided == f"replace `checkout` in .idumb/config.yaml by `{line}`"


def test_a_section_that_is_not_set_is_added() -> None:
    words = project_files.adding("checkout", CheckoutSettings(), {"prepare": ["npm ci"]})
    assert words == "add `checkout: {prepare: [npm ci]}` to .idumb/config.yaml"


def test_the_line_can_be_read_again() -> None:
    text = project_files.line("checkout", PRESENT, {"cache": ("out", "out/**", "it's")})
    settings, findings = configuration.read(f"{text}\n".encode())
    cache = ("out", "out/**", "it's")
    wanted = CheckoutSettings(provide=("data.log",), prepare=("make: deps",), cache=cache, limit=8)
    assert (findings, settings and settings.checkout) == ((), wanted)


_NODE = '{"dependencies": {"a": "1"}}'


def test_manifests_and_lock_files_decide() -> None:
    cases: list[tuple[dict[str, str], list[str], list[str]]] = [
        ({"package.json": _NODE, "package-lock.json": "{}"}, ["npm ci"], ["node_modules"]),
        ({"package.json": '{"devDependencies": {}}', "npm-shrinkwrap.json": "{}"}, ["npm ci"], ["node_modules"]),
        ({"package.json": _NODE, "pnpm-lock.yaml": ""}, ["pnpm install --frozen-lockfile"], ["node_modules"]),
        ({"package.json": _NODE, "yarn.lock": ""}, ["yarn install --frozen-lockfile"], ["node_modules"]),
        ({"package.json": _NODE, "yarn.lock": "", ".yarnrc.yml": ""}, ["yarn install --immutable"], ["node_modules"]),
        ({"package.json": '{"name": "x"}', "package-lock.json": "{}"}, [], []),
        ({"package.json": _NODE}, [], []),
        ({"pyproject.toml": "", "uv.lock": ""}, ["uv sync --frozen"], [".venv"]),
        (
            {"pyproject.toml": "", "poetry.lock": "", "requirements.txt": "a\n"},
            ["POETRY_VIRTUALENVS_IN_PROJECT=true poetry install"],
            [".venv"],
        ),
        (
            {"requirements.txt": "# none\na==1\n", "pyproject.toml": "dependencies = []"},
            ["python3 -m venv .venv", ".venv/bin/pip install -r requirements.txt"],
            [".venv"],
        ),
        (
            {"pyproject.toml": "dependencies = ['a']"},
            ["python3 -m venv .venv", ".venv/bin/pip install --editable ."],
            [".venv"],
        ),
        ({"pyproject.toml": "[tool.ruff]\n"}, [], []),
        ({"go.mod": "module x\n\nrequire a v1\n"}, ["go mod download"], [""]),
        ({"go.mod": "module x\n"}, [], []),
        ({"Cargo.toml": "[dependencies]\n", "Cargo.lock": ""}, ["cargo fetch --locked"], [""]),
        ({"pom.xml": "<dependency>"}, ["mvn -q dependency:go-offline"], [""]),
        ({"Makefile": "all:\n\ttrue\nsetup: x\n"}, ["make setup"], [""]),
        ({"Makefile": "deps := a\nall:\n"}, [], []),
        ({"Makefile": "deps:\n", "pom.xml": "<dependency>"}, ["mvn -q dependency:go-offline"], [""]),
        (
            {"package.json": _NODE, "package-lock.json": "{}", "uv.lock": "", "pyproject.toml": ""},
            ["npm ci", "uv sync --frozen"],
            ["node_modules", ".venv"],
        ),
    ]
    for files, proposed, folders in cases:
        found = project_files.proposals(files, files.__getitem__)
        assert [command for proposal in found for command in proposal.commands] == proposed
        assert [proposal.folder for proposal in found] == folders


def test_a_line_is_valid_yaml() -> None:
    assert project_files.preparing(["npm ci", "python3 -m venv .venv"]) == "prepare: [npm ci, python3 -m venv .venv]"
    assert project_files.preparing(["echo 'a: b', c"]) == "prepare: ['echo ''a: b'', c']"
