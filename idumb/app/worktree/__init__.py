"""The user's working tree: preconditions, delivery, done work, exposed secrets, the base of a task."""
