"""What each HTTP route does, one module per group of routes, with the structs of its queries and bodies.

Start with `files`; `routes` says which function serves which path. A handler parses the request, calls the
service and renders the result; anything that another front needs as well belongs to the service.
"""
