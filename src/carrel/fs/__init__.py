"""Files beneath one open directory, reached by descriptors and never by a path that could lead out.

Start with `api`, the protocols `Files` and `Account`, then `local.root`, which implements them on the
host's disk; `memory` implements them without a disk. Rules about who may do what, quotas and the journal do
not belong here.
"""
