"""Operations that tools of several profiles share: read, write, delete, list, and run command lines.

Start with `reading`. Names and arguments of tools belong to `profiles`. Every operation goes through the
workspace of the context.
"""
