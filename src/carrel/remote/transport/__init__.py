"""Requests from a client to a service, over HTTP or gRPC, blocking or async.

Start with `api`, the protocol that both implement, then `http` or `grpc`. What a caller sees (workspace,
shell, sandbox, tools) is in the package above.
"""
