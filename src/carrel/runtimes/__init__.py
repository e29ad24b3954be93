"""Runtimes execute code on the files of a workspace.

Python in WebAssembly (`wasm`) or programs in a Docker container (`container`). Start with `api` for the
protocol and `result` for what a run returns; `call` and `script` describe one run. No file of a workspace
is opened here except through `Workspace`, and no sandbox or session is created here.
"""
