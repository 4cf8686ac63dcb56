"""The same greeting with typer, an optional peer (`make bench-peers`)."""

from __future__ import annotations

import typer

app = typer.Typer()


@app.command()
def hello(name: str = "world") -> None:
    """Greet somebody."""
    typer.echo(f"hello {name}")


if __name__ == "__main__":
    app()
