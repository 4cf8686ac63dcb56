"""Gates that run what the project names: its checkers, its commands and entry points."""
