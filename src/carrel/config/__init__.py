"""Settings from file and environment."""
