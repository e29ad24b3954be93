"""`carrel sh`: the built-in shell for one command line or at a prompt.

Start with `command`; `prompt` reads lines with history and completion, `interrupts` makes Ctrl-C stop the
running command only. The shell itself is in `carrel.shell`.
"""
