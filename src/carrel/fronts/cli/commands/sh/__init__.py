"""`carrel sh`: the built-in shell for one command line or at a prompt.

Start with `command`; `prompt` reads lines with history and completion, `interrupts` lets Ctrl-C stop a
command and nothing else. The shell itself is in `carrel.shell`.
"""
