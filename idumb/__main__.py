"""`idumb` and `python -m idumb`."""

from __future__ import annotations

import sys


def main() -> None:
    from idumb.cli import main as command_line

    sys.exit(command_line.run(sys.argv[1:]))


if __name__ == "__main__":
    main()
