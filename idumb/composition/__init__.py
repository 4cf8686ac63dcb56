"""The one place where services are made; each command gets its own here."""
