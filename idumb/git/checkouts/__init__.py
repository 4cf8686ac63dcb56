"""Private working trees outside the repository, in which programs build and checks judge."""
