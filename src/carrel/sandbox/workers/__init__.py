"""Worker processes that run the shell command lines of a service.

Each with a memory limit and for one tenant. Start with `pool`, which lends workers, and `runner`, which
runs one line in one of them; `worker` is what runs in the process, `zygote` what it is forked from. Nothing
here decides what a line may do: the worker opens the session through the same gate.
"""
