"""Storage in the `.carrel` directory beside the sessions, shared by all processes of one machine.

Start with `store`, which shows the layout on disk, then `ledger`. Code that needs no files belongs in
`carrel.storage` itself.
"""
