"""Lexical rules, applied before any file is touched.

`parsed_path` parses what a caller wrote, `glob` matches patterns, `session_id` checks ids. Start with
`parsed_path`. Nothing here looks at a file system.
"""
