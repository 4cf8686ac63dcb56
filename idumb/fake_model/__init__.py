"""A scripted model behind a loopback server: four protocols, one script. It needs no model, key or money."""
