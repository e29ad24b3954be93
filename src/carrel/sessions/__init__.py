"""The life cycle of sessions: create, open, extend, delete and sweep.

Start with `manager`; `functions` holds the module-level functions that `carrel` exports. Storage of records
and usage is in `carrel.storage`, operations on files are in `carrel.workspace`.
"""
