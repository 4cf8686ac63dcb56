"""The command line: arguments in, one use case, an answer out. One command a file, imported only when it is called."""
