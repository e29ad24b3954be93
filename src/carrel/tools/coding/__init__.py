"""The tools that coding models know."""
