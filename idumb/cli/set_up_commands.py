"""The commands of the group Set up: install, check, back up and remove idumb; read its documentation."""

from __future__ import annotations

import contextlib
import os
import re
from typing import Any

import click

from idumb.app.core.services import Result
from idumb.cli import main, options
from idumb.domain.hosts import BY_NAME
from idumb.system import shipped


@options.command("init")
@click.option("--here", is_flag=True, help="Set up this folder, as a project of its own.")
def init_command(here: bool) -> Result:
    """Set up idumb in this repository.

    Creates the missing files of .idumb/ and .planning/. Overwrites nothing and does not touch .gitignore or git's own
    files. Safe to run again.

    In a subfolder, init asks whether to set up that folder, as a project of its own, or the top of the repository; by
    default the top.
    """
    from idumb.app.upkeep import init

    texts = {f".planning/{name}": shipped.template(name) for name in ("PROJECT.md", "ROADMAP.md")}
    with options.services(initialised=False) as services:
        place = os.path.relpath(os.path.realpath(os.getcwd()), services.root)
        current = "" if place == init.TOP else place
        chosen = init.choose(services, current, here=here)
        if not chosen:
            return init.init(services, texts, current or init.TOP)
        with contextlib.closing(services.of_folder(chosen)) as project:
            return init.init(project, texts, init.TOP)


@options.command("install")
@click.option("--host", type=click.Choice(sorted(BY_NAME)), required=True, help="The agent host.")
@click.option(
    "--project", "scope", flag_value="project", default="project", help="Install in this repository; the default."
)
@click.option("--user", "scope", flag_value="user", help="Install for you, in every repository.")
@click.option("--remove", is_flag=True, help="Remove the commands.")
@click.option("--dry-run", is_flag=True, help="Print what would be done; change nothing.")
def install_command(host: str, scope: str, remove: bool, dry_run: bool) -> Result:
    """Install idumb's slash commands for an agent host.

    Run it again after you update idumb: it replaces files of an older version. Files that you changed or that are not
    idumb's stay and are listed. `idumb help hosts` lists the folders.
    """
    from idumb import __version__
    from idumb.app.upkeep import install
    from idumb.composition import maintenance

    if not dry_run:
        options.require_person("idumb install")
    texts, here = shipped.commands(), os.getcwd()
    if scope == "project" and not remove:
        with options.services(initialised=False) as services:
            services.history.require_supported()
    places = maintenance.command_folders(here, BY_NAME[host], user=scope == "user")
    if remove:
        return install.remove(places, dry_run=dry_run)
    return install.install(places, texts, __version__, dry_run=dry_run)


@options.command("doctor")
@click.option("--fix", is_flag=True, help="Fix what can be fixed without any loss.")
@click.option("--accept-loss", is_flag=True, help="With --fix: restore the event log, although events are missing.")
def doctor_command(fix: bool, accept_loss: bool) -> Result:
    """Check everything that runs depend on, and fix what is safe.

    Only reads, and runs nothing from the repository, so it works where other commands refuse. Exit code 1 means that it
    found problems.

    With --fix it makes the safe repairs and prints one line for each. What it replaces is kept in the git folder. Your
    files, your branch and your index are never touched. A damaged or missing event log is restored from its newest
    backup; if events are missing in it, --fix says so and waits for --accept-loss.
    """
    from idumb.app.upkeep import doctor
    from idumb.composition import maintenance
    from idumb.domain.errors import Refusal

    with contextlib.ExitStack() as stack:
        try:
            services = stack.enter_context(options.services(progress=fix, initialised=False))
        except Refusal as refusal:
            return doctor.outside(refusal, maintenance.machine_checks())
        return doctor.doctor(services, maintenance.health_checks(services, accept_loss=accept_loss), fix=fix)


config_command = options.Group(
    "config",
    help="""List, read and change settings.

    Those of the project are in .idumb/config.yaml. Yours, which no repository can set, are in
    ~/.config/idumb/config.yaml.
    """,
)


@options.command("list", "cli.configuring.listed", group=config_command, view="config", opens=options.READS)
@click.option("--all", "every", is_flag=True, help="Include settings that have their default.")
def list_settings_command() -> None:
    """List settings with their values and where these come from."""


@options.command("get", "cli.configuring.one", group=config_command, view="config", opens=options.READS)
@click.argument("name")
def get_setting_command() -> None:
    """Show the value of a setting, such as run.max_attempts."""


@options.command("explain", "cli.configuring.one", group=config_command, view="setting", opens=options.READS)
@click.argument("name")
def explain_setting_command() -> None:
    """Show what a setting accepts, its default, its value and its file."""


@options.command(
    "set", "cli.configuring.change", group=config_command, person=True, view="config", opens=options.WRITES
)
@click.argument("name")
@click.argument("value")
def set_setting_command() -> None:
    """Change a setting in its file.

    VALUE is written as in YAML; a text needs no quotes. No other byte of the file changes.
    """


@options.command("path", "cli.configuring.paths", group=config_command, view="config", opens=options.READS)
def config_path_command() -> None:
    """Show where the files of settings are."""


@options.command("backup", opens=options.ANYWHERE)
@click.argument("file", type=click.Path())
@click.option("--verify", is_flag=True, help="Check the file instead of writing it.")
def backup_command(services: options.Container, file: str, verify: bool) -> Result:
    """Write a backup of the event log, or check one.

    Writes every event, except those of archived runs, to a new file that can replace store.db. Files and commits are
    not part of it: git keeps those.
    """
    from idumb.app.upkeep import event_log

    path = os.path.abspath(file)
    return event_log.verify_backup(services, path) if verify else event_log.back_up(services, path)


@options.command("archive", "app.upkeep.event_log.archive", opens=options.ANYWHERE)
@click.option(
    "--keep-runs", type=click.IntRange(1), default=1, show_default=True, help="How many of the newest runs stay."
)
def archive_command() -> None:
    """Move the events of finished runs to compressed files.

    Moves the runs that newer ones replaced, each to a file of its own, and frees their snapshots. `idumb audit verify`
    still checks them; other commands do not show them.
    """


@options.command("deinit", person=True)
@click.option("--backup", metavar="FOLDER", help="Where to write the backup; by default to your state directory.")
@options.negative("--no-backup", "keep", "Write no backup.")
@click.option("--files", is_flag=True, help="Also remove .idumb/.")
@click.option("--all-projects", "every", is_flag=True, help="Remove it from every project of the repository.")
@options.yes
def deinit_command(backup: str | None, keep: bool, **flags: Any) -> Result:
    """Remove idumb from this repository.

    Writes a backup, then removes the refs below refs/idumb/, the event log, the state of every working tree and your
    approvals for this repository. Commits, branches, plans and reports stay, as does .idumb/ unless you add --files.
    If another project of the repository has runs, --all-projects is required.
    """
    if backup is not None and not keep:
        raise click.UsageError("Use either --backup or --no-backup.")
    from idumb.app.upkeep import deinit

    folder = None if backup is None else os.path.abspath(backup)
    with options.services(progress=True, initialised=False) as services:
        return deinit.deinit(services, backup=folder, keep=keep, **flags)


SNIPPETS = "snippets"


@options.command("schema")
@click.argument("name", required=False)
def schema_command(name: str | None) -> Result:
    """Print a JSON Schema, or the snippets for VS Code.

    NAME is `plan` (the front matter of a plan), `config` (.idumb/config.yaml), `snippets`, or a schema of what commands
    print. Without NAME, lists the names.
    """
    from idumb.markdown import setting_types
    from idumb.markdown.plans import frontmatter
    from idumb.views import answer_schemas

    schemas = {"config": setting_types.schema(), "plan": frontmatter.schema()}
    schemas |= answer_schemas.schemas(shipped.pages()["answers"]) | shipped.schemas()
    if name is None:
        rows = [{"name": each, "title": schema["title"]} for each, schema in schemas.items()]
        return Result({"names": [{"name": SNIPPETS, "title": "snippets of plans for VS Code"}, *rows]})
    documents = {SNIPPETS: shipped.snippets(), **schemas}
    if name not in documents:
        raise options.nothing_of_name("schema", f"There is no schema {name!r}.", name, documents)
    return Result({"name": name, "document": documents[name]})


@options.command("help", view="help_page")
@click.argument("topic", nargs=-1)
def help_command(topic: tuple[str, ...]) -> Result:
    """Show a page of the documentation.

    TOPIC is a page or a command. Without TOPIC, lists the pages.
    """
    pages = shipped.pages()
    if not topic:
        titles = {name: text.partition("\n")[0].removeprefix("# ") for name, text in pages.items()}
        return Result({"topics": [{"topic": name, "title": title} for name, title in titles.items()]})
    return Result({"topic": " ".join(topic), "text": _text(pages, " ".join(topic))})


def _text(pages: dict[str, str], topic: str) -> str:
    if topic in pages:
        return re.sub(r"^<!-- .* -->\n", "", pages[topic], flags=re.MULTILINE)  # marks of what is generated
    ctx = click.get_current_context()
    first, _, second = topic.partition(" ")
    command = main.group.get_command(ctx, first)
    if second:
        command = command.get_command(ctx, second) if isinstance(command, click.Group) else None
    if command is not None:
        return command.get_help(click.Context(command, info_name=topic, parent=ctx.parent)) + "\n"
    raise options.nothing_of_name("help", f"No help on {topic!r}.", topic, [*pages, *main.COMMANDS])
