"""Worker processes that run the shell command lines of a service.

Each has a memory limit and serves one tenant. Start with `pool`, which leases workers, and `runner`, which
runs one command line in one of them; `worker` runs in the process, and `zygote` is the process that workers
are forked from. Nothing here decides what a command may do: the worker opens the session through the same
gate.
"""
