"""`carrel session`: create, list, show, verify, extend, delete and sweep sessions.

Start with `command`; `listing`, `status` and `journal` render its output and are imported on first use. The
operations themselves are in `WorkspaceManager`.
"""
