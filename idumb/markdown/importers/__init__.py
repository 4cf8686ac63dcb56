"""One module per foreign format."""
