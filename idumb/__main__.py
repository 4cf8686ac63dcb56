"""`idumb` and `python -m idumb`."""

from __future__ import annotations

import gc
import sys

# With the usual 700, a command looks for cycles more than a hundred times while it loads its modules, and finds none.
_OBJECTS = 100_000


def main() -> None:
    if sys.stderr is None:  # started with 2>&-; no file that is opened later may take its place
        sys.stderr = open("/dev/null", "w", encoding="utf-8")  # noqa: SIM115 - until the process ends
    gc.set_threshold(_OBJECTS)
    try:
        from idumb.cli import main as command_line

        code = command_line.run(sys.argv[1:])
    except KeyboardInterrupt:  # before `cli.main` handled errors, or during its last output
        import os

        try:
            os.write(2, b"idumb: interrupted [run.interrupted]\n  next: to see the state of the run: idumb status\n")
        except OSError:  # standard error is closed
            pass
        code = 130
    from idumb.cli import output

    code = output.flush(code)
    gc.freeze()  # otherwise the interpreter collects cycles in every loaded module before it exits
    sys.exit(code)


if __name__ == "__main__":
    main()
