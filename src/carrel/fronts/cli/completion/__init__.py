"""Shell completion: `carrel completion` prints a script, which calls the hidden `carrel _complete`.

Start with `command`; `completers` holds the click callbacks that look up values, `scripts` one file per
shell. Completion never fails, creates nothing and opens no database.
"""
