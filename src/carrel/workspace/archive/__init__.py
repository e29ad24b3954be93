"""Archives of a workspace.

`create` streams a directory as tar or zip, `extract` validates a whole archive before it writes anything.
Start with one of these two. Everything is read and written through the gate, and nothing is unpacked by the
standard library.
"""
