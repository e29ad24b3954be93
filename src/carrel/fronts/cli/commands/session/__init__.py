"""`carrel session`: create, list, show, verify, extend, delete and sweep sessions.

Start with `command`; `listing`, `status` and `journal` render what it prints and are imported when they are
needed. The operations themselves are in `WorkspaceManager`.
"""
