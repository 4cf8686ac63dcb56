"""The smallest useful program with the command line library that idumb uses: what a start cannot go below."""

from __future__ import annotations

import click


@click.command()
@click.option("--name", default="world")
def hello(name: str) -> None:
    """Greet somebody."""
    click.echo(f"hello {name}")


if __name__ == "__main__":
    hello()
