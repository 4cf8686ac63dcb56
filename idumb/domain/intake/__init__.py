"""The checks that a legal plan must pass before it may run: one small pure function each, listed in `registry`."""
