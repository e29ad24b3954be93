"""Requests from a client to a service, over HTTP or gRPC, blocking or async.

Start with `api`, the protocol that both implement, then `http` or `grpc`. The classes for callers (workspace,
shell, sandbox, toolbox) are in the parent package.
"""
