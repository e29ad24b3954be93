"""The client: sessions of a service with the interface of the library, blocking or async.

Start with `client`, then `workspace` and `async_workspace`; `transport` sends the requests, and `proto` holds
the generated gRPC messages. `json_codec` is shared with the fronts; nothing else here runs in the service.
"""
