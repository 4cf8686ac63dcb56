"""The event log and everything read from it. Only this package imports sqlite3.

`connection` opens the database, `event_chain` has its tables and how events are chained, `event_log` appends and reads
them, `backups` copies them. `ownership` says who may write (`owner_card`: who that is), `consent` and `signing` what a
person agreed to. `status_view` caches what `idumb status` shows, `local_data` lists what `deinit` removes.
"""
