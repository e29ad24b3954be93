"""Remember: one record per change and per refusal, and log events."""
