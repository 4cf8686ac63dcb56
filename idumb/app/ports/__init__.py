"""The ports: protocols for what has a second behaviour, in tests or in another room; and types that rooms share.

Paths are `str`, relative to the workspace root with `/`; bytes that are not UTF-8 are surrogate escapes.
Object ids are hexadecimal.
"""
