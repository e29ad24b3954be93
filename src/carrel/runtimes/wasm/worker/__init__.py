"""The worker process: the WebAssembly engine, its interpreters and the lockdown they run under.

Start with `main`, then `interpreter`; `file_system` provides the files that a guest sees. Nothing here opens
a file of a workspace or imports `carrel.workspace`: every file operation is a request to the host.
"""
