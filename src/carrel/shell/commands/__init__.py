"""The commands, one module each.

`Flags` for the options, `run(ctx, flags, operands)`, and `accesses` for the paths it would use. A large
command is a package whose `command` module has these, and which holds what only that command needs;
`carrel.shell.command.table` lists them all. What two commands share belongs to `shell.command` or
`shell.text`.
"""
