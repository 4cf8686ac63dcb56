"""Tasks built in an editor: start, submit, give up, and the builder's prompt."""
