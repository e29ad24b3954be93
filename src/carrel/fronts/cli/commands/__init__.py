"""The commands.

One module each, and a package for those with parts of their own (`files`, `session`, `sh`; their click
command is in `command`). Start with `policy`, a short one, then `session.command`. What several commands
share belongs one level up: options in `option_types`, printing in `output`, files of this machine in
`local_files`.
"""
