"""What happened.

`journal` keeps the events of a workspace, `chain` verifies them, `logger` writes log events. Start with
`event`. Deciding what to record is up to the callers, mainly `carrel.storage.recorder`.
"""
