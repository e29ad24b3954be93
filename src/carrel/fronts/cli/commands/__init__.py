"""The commands.

One module per command, and a package for those with several modules (`files`, `session`, `sh`), whose click
commands are in `command`. Start with `policy`, a short one, then `session.command`. Code shared by several
commands belongs one level up: options in `option_types`, printing in `output`, local files in `local_files`.
"""
