"""What runs in a worker process.

The WebAssembly engine, its interpreters, and the lockdown they run under. Start with `main`, then
`interpreter`; `file_system` is what a guest sees as its files. Nothing here opens a file of a workspace or
imports a workspace: every file operation is a request to the host.
"""
