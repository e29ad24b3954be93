"""Lexical rules, applied before any file is touched.

`parsed_path` parses paths from callers, `glob` matches patterns, `session_id` validates ids. Start with
`parsed_path`. Nothing here looks at a file system.
"""
