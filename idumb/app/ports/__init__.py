"""The ports: protocols for everything that the engine needs from outside. `idumb/composition/` provides them.

Paths are `str`, relative to the workspace root with `/`; bytes that are not UTF-8 are surrogate escapes.
Object ids are hexadecimal.
"""
