"""The interface that commands are written against, and code that several of them share.

Start with `context` (what a command may reach) and `flags` (its options), then `table` (all commands) and
`invocation` (one call). The code of a single command belongs to `shell.commands`, running a command line to
`shell.runtime`.
"""
