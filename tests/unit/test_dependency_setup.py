"""Proposals for `checkout.prepare`, by the files of a project."""

from __future__ import annotations

from idumb.domain.dependency_setup import line, proposals

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
        found = proposals(files, files.__getitem__)
        assert [command for proposal in found for command in proposal.commands] == proposed
        assert [proposal.folder for proposal in found] == folders


def test_a_line_is_valid_yaml() -> None:
    assert line(["npm ci", "python3 -m venv .venv"]) == "prepare: [npm ci, python3 -m venv .venv]"
    assert line(["echo 'a: b', c"]) == "prepare: ['echo ''a: b'', c']"
