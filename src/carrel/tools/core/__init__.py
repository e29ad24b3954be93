"""What every tool is made of.

Its row (`table`, `spec`), the schema of its arguments, its context, options, deadline, result and errors.
Start with `spec`. Nothing here knows a single tool, and nothing here imports `results`, `operations` or
`profiles`; the code of a tool is loaded by name on first use.
"""
