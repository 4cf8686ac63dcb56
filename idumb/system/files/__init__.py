"""Files and folders outside git: atomic writes, reports, the user's own folders."""
