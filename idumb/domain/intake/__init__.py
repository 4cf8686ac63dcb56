"""The checks that a valid plan must pass before it runs: one small pure function each, listed in `registry`."""
