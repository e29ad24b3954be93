"""The command `diff`.

Start with `command`: `comparison` reads two files and compares them, `hunks` renders the changes. The
algorithm is in `shell.text.line_diff`, because tools use it too.
"""
