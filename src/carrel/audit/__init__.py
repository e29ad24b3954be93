"""Events: the journal of a workspace and the log.

`journal` stores the events of a workspace in the files of `journal_files`, `chain` verifies them, `logger`
writes log events, `counts` counts refusals for metrics. Start with `event`. What is recorded is decided by
the callers, mainly `carrel.storage.recorder`.
"""
