"""Source text that runs inside the guest interpreter.

`prelude`, which surrounds every script, and `sandbox_utils`, which scripts may import. `sources` reads the
text for the worker process. Nothing here is imported by the host, except the name of the package from
`sources`.
"""
