"""The checks that a valid plan must pass before it runs: a predicate each, listed in `registry`."""
