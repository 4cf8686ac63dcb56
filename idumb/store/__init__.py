"""The event log and what is read from it; the only room that imports sqlite3."""
