"""The `carrel` command line.

One click command per module or package of `commands`, and the three larger ones, `demo`, `doctor` and
`completion`, as packages of their own. Start with `main`, which assembles the commands and turns errors
into exit statuses, then `context`, which every command receives. Operations on sessions and files do not
belong here: a command parses its arguments, calls `workspace`, `sandbox`, `tools` or `service`, and prints
the result. Nothing heavy is imported before a command runs, which keeps `--help` fast.
"""
