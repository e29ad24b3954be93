"""How an answer is built.

Metadata of files, lines that fit, diffs, media types, parsed data, output of runs, and the changes a call
made. Start with `file_results`. Modules here format what they are given; what works on the workspace is in
`operations`.
"""
