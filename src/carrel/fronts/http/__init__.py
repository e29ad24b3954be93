"""The HTTP front: routes, and what goes over them."""
