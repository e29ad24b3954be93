"""The expressions of `find`: how they are read, what they test and what they print."""
