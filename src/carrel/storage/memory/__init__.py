"""Storage for a single process, gone when it ends.

`ledger` counts a workspace that is not a session, `registry` keeps session records. Nothing here is written
to disk.
"""
