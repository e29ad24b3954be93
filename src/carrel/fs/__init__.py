"""Touch files: one directory handle per root, everything beneath it."""
