"""The ports: everything the engine needs from outside, as protocols. `idumb/composition/` implements them.

Paths are `str`, relative to the workspace root with `/`; bytes that are not UTF-8 are surrogate escapes.
Object ids are hex.
"""
