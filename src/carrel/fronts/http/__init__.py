"""The HTTP front: an ASGI application, its router, and the OpenAPI description made from the same rows.

Start with `routes`, the table of everything that can be requested, then `app` and `request`; what a route
does is in `handlers`. Other fronts and rules about callers do not belong here.
"""
