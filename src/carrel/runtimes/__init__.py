"""Runtimes execute code on the files of a workspace: Python in WebAssembly, or programs in a container.

Start with `api` for the protocol and `result` for what a run returns; `call` and `script` describe one run,
`wasm` and `container` implement it. Files of a workspace are opened only through `Workspace`, and no sandbox
or session is created here.
"""
