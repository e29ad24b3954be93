"""The built-in shell.

Parses a command line and runs its commands as functions on the files of one workspace; no process is
started. Start with `runtime.shell` and `runtime.execution`, then `language.parser` for the syntax and
`command.table` for the commands; all packages share the modules `budget`, `state`, `streams`, `result`
and `api`. Nothing here may open a host path, start a process or read configuration:
commands reach files only through the workspace in their `Context`.
"""
