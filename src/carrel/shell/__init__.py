"""Commands on the files of a workspace, in process: a shell with no shell behind it."""
