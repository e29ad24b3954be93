"""The public sandbox.

A runtime or the built-in shell on the files of one session, directory or open workspace. Start with
`factory`, which creates them, and `sandbox`, which runs calls; `engines` owns the runtimes of this process
and `workers` runs shell command lines in processes of their own. How code is run belongs to
`carrel.runtimes` and `carrel.shell`.
"""
