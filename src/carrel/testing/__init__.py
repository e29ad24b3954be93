"""Helpers for tests of programs that use carrel."""

from carrel.testing.tree import tree

__all__ = ["tree"]
