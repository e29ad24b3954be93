"""The command `sed`.

Start with `command`, then `parser`, which parses a script into the commands of `script`, and `machine`,
which runs them on each line; `addresses` decides which commands apply. Regular expressions are in
`shell.text.regex`.
"""
