"""The gate.

Every operation on the files of a workspace parses its path, checks the policy, then charges, records and
acts. Start with `workspace` and `gate`; `reading` and `writing` hold the operations, and `views` finds the
directory of a rule. The life cycle of sessions is in `carrel.sessions`; usage and records are stored by
`carrel.storage`.
"""
