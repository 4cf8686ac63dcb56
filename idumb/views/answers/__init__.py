"""What each command prints, by group of commands."""
