"""Files that tools leave, and the line that proposes how to install dependencies, for the present configuration."""

from __future__ import annotations

from msgspec.structs import replace

from idumb.domain import project_files
from idumb.domain.settings import CheckoutSettings, CheckSettings
from idumb.markdown import configuration

PRESENT = CheckoutSettings(provide=("data.log",), prepare=("make: deps",), limit=8)


def test_the_proposed_line_keeps_what_is_set_and_can_be_read_again() -> None:
    home = project_files.how_to_set("checks", CheckSettings(control="off"), {"home": "user"})
    assert home == "write `checks: {home: user, control: off}` in .idumb/config.yaml"
    more: dict[str, tuple[str, ...]] = {"provide": ("b c.log", "data.log"), "cache": ("out", "out/**", "it's")}
    line = project_files.how_to_set("checkout", PRESENT, more).split("`")[1]
    settings, findings = configuration.read(f"{line}\n".encode())
    wanted = replace(PRESENT, **{**more, "provide": ("data.log", "b c.log")})
    assert (findings, settings and settings.checkout) == ((), wanted)


_NODE = '{"dependencies": {"a": "1"}}'


def test_manifests_and_lock_files_decide() -> None:
    cases: list[tuple[dict[str, str], list[str], list[str]]] = [
        ({"package.json": _NODE, "package-lock.json": "{}"}, ["npm ci"], ["node_modules"]),
        ({"package.json": '{"devDependencies": {}}', "npm-shrinkwrap.json": "{}"}, ["npm ci"], ["node_modules"]),
        ({"package.json": _NODE, "pnpm-lock.yaml": ""}, ["pnpm install --frozen-lockfile"], ["node_modules"]),
        ({"package.json": _NODE, "yarn.lock": ""}, ["yarn install --frozen-lockfile"], ["node_modules"]),
        (
            {"package.json": _NODE, "yarn.lock": "", ".yarnrc.yml": ""},
            ["YARN_ENABLE_GLOBAL_CACHE=false yarn install --immutable"],
            ["node_modules"],
        ),
        ({"package.json": _NODE, "bun.lockb": ""}, ["bun install --frozen-lockfile"], ["node_modules"]),
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
        (
            {"pyproject.toml": '[project.optional-dependencies]\ndocs = ["a"]\ndev = [\n  "b",\n]\n'},
            ["python3 -m venv .venv", ".venv/bin/pip install --editable '.[dev]'"],
            [".venv"],
        ),
        (
            {"pyproject.toml": '[project.optional-dependencies]\ndocs = ["a"]\n[x]\ndev = 1\n'},
            ["python3 -m venv .venv", ".venv/bin/pip install --editable ."],
            [".venv"],
        ),
        (
            {"requirements.txt": "a\n", "requirements-dev.txt": "b\n"},
            ["python3 -m venv .venv", ".venv/bin/pip install -r requirements.txt -r requirements-dev.txt"],
            [".venv"],
        ),
        ({"pyproject.toml": "", "pdm.lock": ""}, ["pdm sync"], [".venv"]),
        ({"Pipfile": "", "Pipfile.lock": ""}, ["PIPENV_VENV_IN_PROJECT=1 pipenv sync --dev"], [".venv"]),
        ({"composer.json": '"require": {}', "composer.lock": ""}, ["composer install --no-interaction"], ["vendor"]),
        (
            {"Gemfile": "gem 'a'\n", "Gemfile.lock": ""},
            ["bundle config set --local path vendor/bundle && bundle install"],
            ["vendor/bundle"],
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
        found = project_files.proposals(project_files.manifests(files.get))
        assert [command for proposal in found for command in proposal.commands] == proposed
        assert [proposal.folder for proposal in found] == folders


def test_a_line_is_valid_yaml() -> None:
    assert project_files.prepare_line(["npm ci", "python3 -m venv .venv"]) == "prepare: [npm ci, python3 -m venv .venv]"
    assert project_files.prepare_line(["echo 'a: b', c"]) == "prepare: ['echo ''a: b'', c']"


def roots(path: str) -> list[str]:
    return [match.root for match in project_files.leftovers(path)]


def test_what_a_tool_leaves_is_recognized_with_the_file_or_folder_that_it_belongs_to() -> None:
    cases: list[tuple[str, str]] = [
        ("__pycache__/a.cpython-311.pyc", "__pycache__/"),
        ("src/app/__pycache__/a.pyc", "src/app/__pycache__/"),
        ("a.pyc", "a.pyc"),
        (".pytest_cache/v/cache/lastfailed", ".pytest_cache/"),
        (".mypy_cache/3.12/a.json", ".mypy_cache/"),
        (".ruff_cache/0.1/1", ".ruff_cache/"),
        (".coverage", ".coverage"),
        ("tests/.coverage.host.12", "tests/.coverage.host.12"),
        ("htmlcov/index.html", "htmlcov/"),
        (".venv/bin/python", ".venv/"),
        (".tox/py/bin/x", ".tox/"),
        (".nox/tests/x", ".nox/"),
        (".hypothesis/examples/1", ".hypothesis/"),
        ("web/node_modules/a/node_modules/b.js", "web/node_modules/"),
        (".next/build-manifest.json", ".next/"),
        (".turbo/x", ".turbo/"),
        (".parcel-cache/x", ".parcel-cache/"),
        ("crate/target/debug/x", "crate/target/"),
        (".gradle/8/x", ".gradle/"),
        (".aider.chat.history.md", ".aider.chat.history.md"),
        (".aider.tags.cache.v4/cache.db", ".aider.tags.cache.v4/"),
        (".DS_Store", ".DS_Store"),
        ("img/Thumbs.db", "img/Thumbs.db"),
        (".claude/settings.local.json", ".claude/settings.local.json"),
        ("nb/.ipynb_checkpoints/a-checkpoint.ipynb", "nb/.ipynb_checkpoints/"),
        ("src/.a.py.swp", "src/.a.py.swp"),
        ("notes.txt~", "notes.txt~"),
        ("#notes.txt#", "#notes.txt#"),
        (".#notes.txt", ".#notes.txt"),
    ]
    assert not [(path, root) for path, root in cases if roots(path)[0] != root]


def test_other_files_are_not() -> None:
    cases: list[str] = [
        "pycache/a.py", "__pycache__", "a.pyc.txt", ".coveragerc", ".coverage/x", ".aider.conf.yml", ".aiderignore",
        ".claude/settings.json", "settings.local.json", "target", "node_modules", "my~file", "#todo", ".swp",
    ]  # fmt: skip
    assert not [path for path in cases if roots(path) != []]


def test_some_names_need_a_file_beside_or_inside_them() -> None:
    (cargo,) = project_files.leftovers("crate/target/debug/x")
    (environment,) = project_files.leftovers("venv/bin/x")
    (plain,) = project_files.leftovers(".venv/bin/x")
    assert (cargo.beside, cargo.inside) == ("crate/Cargo.toml", "")
    assert (environment.beside, environment.inside) == ("", "venv/pyvenv.cfg")
    assert (plain.beside, plain.inside) == ("", "")


def test_a_task_declares_such_a_file_only_by_its_name() -> None:
    cases: list[tuple[str, str, bool]] = [
        ("src/__pycache__/a.pyc", "src/**", False),
        ("src/__pycache__/a.pyc", "src/__pycache__/a.pyc", True),
        ("src/__pycache__/a.pyc", "src/__pycache__/", True),
        ("src/__pycache__/a.pyc", "**/*.pyc", True),
        ("node_modules/a.js", "node_modules/**", True),
        ("node_modules/a.js", "node_modules/b.js", False),
        (".coverage", "*", False),
    ]
    assert not [
        (path, claim, declared)
        for path, claim, declared in cases
        if project_files.declares_leftover(path, [claim]) is not declared
    ]
