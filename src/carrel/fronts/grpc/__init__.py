"""The gRPC front.

The services of `carrel_v1.proto`, with health and reflection, in the event loop of the service. Start with
`methods`, the table of all methods, then `dispatcher`, through which every call comes in; what a method
does is in `handlers`. The generated messages and the client are in `carrel.remote`.
"""
