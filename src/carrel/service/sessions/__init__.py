"""Sessions as callers use them: created, listed, opened in a role, kept open between calls, and deleted.

Start with `access`, the way from a caller to an open session, then `caller_session`. Storage of sessions is
below, in the workspace layer; running code is in `executions`.
"""
