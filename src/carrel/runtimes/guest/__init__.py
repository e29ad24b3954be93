"""What runs in a worker process: the engine and its interpreters, and nothing that touches files."""
