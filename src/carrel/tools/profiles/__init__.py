"""The tools themselves, one module per profile and a package for the two large ones, `agent` and `mcp`.

A tool NAME is a class `NameArgs`, a function `run_NAME` and a string `NAME_NOTES`, found through its row in
`core.table`. Code that two profiles share belongs to `operations`.
"""
