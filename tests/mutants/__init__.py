"""Guards that are taken out, one at a time, to see whether a test notices."""
