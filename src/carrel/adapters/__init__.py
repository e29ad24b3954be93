"""carrel as the workspace of an agent framework: one package per framework, each with an extra of its own.

Start with the `__init__` of a framework's package, which shows its use; its `errors` module translates
errors of carrel. Frameworks do not know each other, and what two of them need lies here: `extra` and
`script`.
"""
