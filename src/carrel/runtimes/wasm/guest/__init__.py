"""Source text that runs inside the guest interpreter.

`prelude` wraps every script, and scripts may import `sandbox_utils`; `sources` reads the text for the worker
process. The host imports nothing from here except the package name in `sources`.
"""
