"""Models without a program of their own: servers, tools and replies."""
