"""Runs command lines.

Expands words, opens redirections, connects pipelines, runs commands and reports the outcome. Start with
`shell`, then `runner` and `execution`, which uses `pipeline` and `redirect`; `analysis` and `completion`
examine a line without running it. Syntax belongs to `shell.language`, the interface of commands to
`shell.command`.
"""
