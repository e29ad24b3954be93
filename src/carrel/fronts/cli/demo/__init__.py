"""`carrel demo`: the life of a session as real commands, each checked.

Start with `command`; `script` lists the commands and their expected output, `runner` runs them in a temporary
directory, `output` prints them. No operation is implemented here: the demo only runs `carrel` itself.
"""
