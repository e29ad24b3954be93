"""The shell language: tokens, syntax tree, parser, and the expansions that turn words into arguments.

Start with `ast`, then `lexer`, `parser` and `expand`; `pattern` matches one name, `glob` looks names up in
directories. Nothing here runs a command or touches a file: directories and variables come in as functions.
"""
