"""`idumb` and `python -m idumb`."""

from __future__ import annotations

import sys


def main() -> None:
    from idumb.cli import quick

    code = quick.answer(sys.argv[1:])
    if code is None:
        from idumb.cli import main as command_line

        code = command_line.run(sys.argv[1:])
    sys.exit(code)


if __name__ == "__main__":
    main()
