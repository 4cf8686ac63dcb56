"""Plans of other tools, read as they are. They are never written: their authors' tools own the Markdown."""
