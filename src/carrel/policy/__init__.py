"""Decide: which path may be read or written."""
