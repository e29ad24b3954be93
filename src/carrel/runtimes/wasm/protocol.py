"""Control messages from the host to a worker process; an open message carries a socket."""

from __future__ import annotations

from struct import Struct

MESSAGE = Struct("<BBxxII")
"""Action, whether the interpreter is metered, number of the interpreter, serial number of the script."""
OPEN = 1
"""Open an interpreter on the socket that the message carries."""
OPEN_WARM = 2
"""Open an interpreter, and preload what the first error of a script would load."""
CANCEL = 3
"""Stop a script, even if it has not arrived yet."""
