"""Storage for the metadata of sessions: everything but their files.

The registry of sessions, the ledger (the usage of each) and the recorder of its journal. Start with
`api`, the protocols; `local` implements them for the processes of one machine, `memory` for a single
process. Nothing here opens a workspace or makes access decisions.
"""
