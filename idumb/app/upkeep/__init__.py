"""Set-up and maintenance: init, install, doctor, backup, archive, deinit."""
