"""What a command is written against.

Its `Context`, its options, its row in the table, and code that several commands share. Start with `context`
and `flags`, then `table` and `invocation`. A single command's code belongs to `shell.commands`, running a
command line to `shell.runtime`.
"""
