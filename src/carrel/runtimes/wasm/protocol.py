"""Control messages from the host to a worker process; an open message comes with a socket."""

from __future__ import annotations

from struct import Struct

MESSAGE = Struct("<BBxxII")
"""What to do, whether it concerns a metered interpreter, its number, and the number of its script."""
OPEN = 1
"""Open an interpreter on the line that comes with the message."""
OPEN_WARM = 2
"""The same, and load what the first error of a script would load."""
CANCEL = 3
"""Stop a script, also if it has not come yet."""
