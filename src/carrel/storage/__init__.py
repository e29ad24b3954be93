"""What is kept about sessions besides their files.

The registry of sessions, the ledger (how much each holds) and the recorder of its journal. Start with
`api`, the protocols; `local` implements them for the processes of one machine, `memory` for a single
process. Nothing here opens a workspace or decides who may do what.
"""
