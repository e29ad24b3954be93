"""The files of a directory of the host.

Resolved by openat2 or name by name, written as drafts and renamed into place. Start with `root`, then
`lookup` and `resolve`, which turn a path into descriptors. Raw system calls are in `carrel.fs.syscalls`,
and sessions are not known here.
"""
