"""The checks that a valid plan must pass before it runs: a predicate each, and a row in `registry` with its texts."""
