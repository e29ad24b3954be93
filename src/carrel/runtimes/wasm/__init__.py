"""Python in WebAssembly.

The host side, which hands scripts to worker processes and serves their files through the gate. Start with
`runtime`, then `pool`, `worker_process` and `interpreter`; `worker` is what runs in a worker process,
`guest` what runs inside the interpreter, `build` how the guest is compiled and cached. Nothing outside
`worker` and `build.engine_cache` imports the WebAssembly engine.
"""
