"""The parts of every tool: table row, argument schema, context, options, deadline, pagination and errors.

Start with `spec`. Apart from the rows in `table`, nothing here is specific to one tool, and nothing here
imports `results`, `operations` or `profiles`; the code of a tool is imported by name on first use.
"""
