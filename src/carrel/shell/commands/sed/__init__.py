"""The command `sed`.

Start with `command`, then `parser`, which reads a script into the commands of `script`, and `machine`,
which runs them for each line; `addresses` decides which commands apply. Regular expressions are in
`shell.text.regex`.
"""
