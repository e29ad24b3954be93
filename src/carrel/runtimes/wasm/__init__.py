"""Python in WebAssembly: the host side, which sends scripts to worker processes and serves their files.

Start with `runtime`, then `pool`, `worker_process`, `interpreter` and `exchange`; `worker` runs in a worker
process, `guest` inside the interpreter, and `build` compiles and caches the guest. Nothing outside `worker`
and `build.engine_cache` imports the WebAssembly engine.
"""
