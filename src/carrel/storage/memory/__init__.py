"""Storage for a single process, lost when it ends.

`ledger` accounts for a workspace that is not a session, `registry` keeps session records. Nothing here is
written to disk.
"""
