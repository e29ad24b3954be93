"""Sessions: created, opened, extended, deleted and swept.

Start with `manager`; `functions` are the module-level functions that `carrel` exports. How records and
counts are stored is in `carrel.storage`, and what can be done to files is in `carrel.workspace`.
"""
