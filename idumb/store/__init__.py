"""The event log and everything read from it. Only this package imports sqlite3."""
