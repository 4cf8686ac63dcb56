"""The smallest useful program with idumb's command line library: the lower bound of a start."""

from __future__ import annotations

import click


@click.command()
@click.option("--name", default="world")
def hello(name: str) -> None:
    """Greet somebody."""
    click.echo(f"hello {name}")


if __name__ == "__main__":
    hello()
