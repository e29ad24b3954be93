"""Using a service as if it were the library."""
