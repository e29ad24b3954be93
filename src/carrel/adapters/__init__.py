"""Adapters for agent frameworks: one package per framework, each with its own extra.

Start with the `__init__` of a framework's package, which shows its use; its `errors` module translates the
errors of carrel. Adapters do not import each other; shared modules are `extra` and `script`.
"""
