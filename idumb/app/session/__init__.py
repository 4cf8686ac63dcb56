"""One writing command: ownership of the working tree, its record in the log, its report."""
