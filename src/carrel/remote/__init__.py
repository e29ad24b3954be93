"""The client: the sessions of a service, used like the library, blocking or async.

Start with `client`, then `workspace` and `async_workspace`; how requests travel is in `transport`, the
generated gRPC messages are in `proto`. `json_codec` is shared with the fronts; nothing else here runs in
the service.
"""
