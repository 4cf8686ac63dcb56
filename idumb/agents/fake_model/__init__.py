"""A scripted model behind a loopback server: four protocols, one script. No model, no key and no money is needed."""
