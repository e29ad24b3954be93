"""Filesystem operations for workflows, with `data` in their answers."""
