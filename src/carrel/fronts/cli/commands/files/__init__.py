"""`carrel files`: list, read, write and remove the files of a session.

Start with `command`; `local_directory` packs and writes whole local directories. Single local files are read
and written by `carrel.fronts.cli.local_files`.
"""
