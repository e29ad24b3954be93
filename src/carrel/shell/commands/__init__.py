"""The commands, one module each.

A module has `Flags` for the options, `run(ctx, flags, operands)`, and `accesses` for the paths that the
command would access. A large command is a package with these in its `command` module.
`carrel.shell.command.table` lists all commands. Code that two commands share belongs to `shell.command` or
`shell.text`.
"""
