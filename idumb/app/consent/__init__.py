"""What must be agreed to, what was, and the questions that ask for the rest."""
