"""Set-up and maintenance: init, install, doctor, deinit, the event log."""
