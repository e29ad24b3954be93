"""The work that tools of several profiles share.

Reading, writing, deleting, listing, and running command lines. Start with `reading`. Names and arguments of
tools belong to `profiles`, and every operation goes through the workspace of the context.
"""
