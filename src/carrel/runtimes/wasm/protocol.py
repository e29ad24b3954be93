"""Binary messages of the host and a worker process: control messages, and requests for a piece of a file."""

from __future__ import annotations

from struct import Struct

MESSAGE = Struct("<BBxxII")
"""Action, whether the interpreter is metered, number of the interpreter, serial number of the script; an open
message carries a socket."""
OPEN = 1
"""Open an interpreter on the socket that the message carries."""
OPEN_WARM = 2
"""Open an interpreter, and preload what the first error of a script would load."""
CANCEL = 3
"""Stop a script, even if it has not arrived yet."""
PIECE = Struct("<QI")
"""Offset and length of a piece, as the body of the file operation `piece`."""
