"""The gate.

Every operation on the files of a workspace parses its path, asks the policy, then charges, records and
acts. Start with `workspace` and `gate`; `views` finds the directory that a rule opens. The lifetime of
sessions is in `carrel.sessions`, and counts and records are kept in `carrel.storage`.
"""
