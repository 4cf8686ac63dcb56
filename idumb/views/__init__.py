"""Everything a person reads, as pure functions from state to text; nothing here knows where the text goes."""
