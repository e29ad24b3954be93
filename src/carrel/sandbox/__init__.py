"""Sandboxes: a runtime or the built-in shell on the files of one session, directory or open workspace.

Start with `factory`, which creates sandboxes, and `sandbox`, which runs calls; `engines` owns the runtimes of
this process, and `workers` runs shell command lines in separate processes. How code is executed belongs to
`carrel.runtimes` and `carrel.shell`.
"""
