"""The files of a directory of the host.

Paths are resolved by openat2 or name by name; new content is written as a draft and renamed into place.
Start with `root`, then `lookup` and `resolve`, which turn a path into descriptors. Raw system calls are in
`carrel.fs.syscalls`, and nothing here knows about sessions.
"""
