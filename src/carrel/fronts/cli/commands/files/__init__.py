"""`carrel files`: list, read, store, fetch and remove the files of a session.

Start with `command`; `local_directory` packs and writes whole directories of this machine. Single local
files are read and written by `carrel.fronts.cli.local_files`.
"""
