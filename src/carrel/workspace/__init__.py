"""The gate: every file operation goes through it."""
