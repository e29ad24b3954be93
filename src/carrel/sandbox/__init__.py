"""A runtime on the files of a session."""
