"""For tests of code that uses carrel."""

from carrel.testing.tree import tree

__all__ = ["tree"]
