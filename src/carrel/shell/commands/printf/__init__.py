"""The command `printf`.

Start with `command`, which applies the format to the arguments; `conversion` renders one value. Backslash
escapes are in `shell.text.escapes`, because `echo` has them too.
"""
