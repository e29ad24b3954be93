"""What each gRPC method does, one module per group of methods.

Start with `files`; `methods` says which function handles which method. A handler reads the message, calls
the service and renders the result; authentication, limits and errors are the dispatcher's.
"""
