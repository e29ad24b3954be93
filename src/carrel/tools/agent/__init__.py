"""Our own tools for agents."""
