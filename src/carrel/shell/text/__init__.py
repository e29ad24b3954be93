"""Text formats that several commands share.

Quoting, escapes, regular expressions, timestamps, file attributes, line records and line differences. Each
module stands alone; start with `quoting` and `records`. What only one command formats or parses belongs to
that command, and nothing here knows a `Context` or a workspace.
"""
