"""What idumb keeps: one tree of names for each working tree, its repair, and packs of its objects."""
