"""Building blocks of results: file metadata, lines, diffs, media types, parsed data, run output, changes.

Start with `file_results`. Modules here only format; work on the workspace is in `operations`.
"""
