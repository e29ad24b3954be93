"""What carrel needs from the host besides the files of a workspace.

Directories that only this user may write to, flushing to disk, and what the platform supports. Start with
`trusted_dirs`. Operations on the files of a workspace are in `carrel.fs.local`.
"""
