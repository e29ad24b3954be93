"""Runs command lines.

Expands words, opens redirects, connects pipelines, calls commands and reports the outcome. Start with
`shell`, then `runner` and `execution`; `analysis` and `completion` look at a line without running it.
Syntax belongs to `shell.language`, what a command may reach to `shell.command`.
"""
