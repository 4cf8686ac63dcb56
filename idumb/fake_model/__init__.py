"""A scripted model behind a loopback server: two protocols, one script. It needs no model, key or money."""
