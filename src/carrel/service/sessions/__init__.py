"""Sessions of callers: create, list, open in a role, keep open between calls, and delete.

Start with `access`, which opens a session for a caller, then `caller_session`. The storage of sessions is in
the layers below; running code is in `executions`.
"""
