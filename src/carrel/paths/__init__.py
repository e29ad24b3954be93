"""Lexical rules: what a caller may write, before any file is touched."""
