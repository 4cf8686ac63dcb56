"""Pure data and functions: contracts, graphs, events, outcomes. Knows no files, git, clock or database."""
