"""One file for each foreign plan dialect."""
