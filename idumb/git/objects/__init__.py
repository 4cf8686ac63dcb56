"""Objects in git's database: blobs, trees, and the only writer."""
