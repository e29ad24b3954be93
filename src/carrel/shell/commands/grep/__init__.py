"""The command `grep`.

Start with `command`: `matching` compiles patterns and finds matching lines in large buffers, `lines`
selects lines of a file, `output` prints them with context. Regular expressions themselves are in
`shell.text.regex`.
"""
