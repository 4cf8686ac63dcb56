"""`idumb` and `python -m idumb`."""

from __future__ import annotations

import gc
import sys


def main() -> None:
    try:
        code = _run(sys.argv[1:])
    except KeyboardInterrupt:  # before the boundary of the command line was there, or while it said its last words
        import os

        try:
            os.write(2, b"idumb: interrupted [run.interrupted]\n  next: to see the state of the run: idumb status\n")
        except OSError:  # the reader of standard error has left
            pass
        code = 130
    from idumb.cli import output

    code = output.flushed(code)
    gc.freeze()  # else the interpreter, before it ends, looks for cycles in every module that was loaded
    sys.exit(code)


def _run(arguments: list[str]) -> int:
    from idumb.cli import cached_view

    code = cached_view.answer(arguments)
    if code is None:
        from idumb.cli import main as command_line

        code = command_line.run(arguments)
    return code


if __name__ == "__main__":
    main()
