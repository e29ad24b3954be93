"""Doors to people and programs; each stands alone."""
