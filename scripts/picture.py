"""Run `carrel demo` on a terminal and draw its output as SVG. Nothing is written unless the demo succeeds."""

from __future__ import annotations

import argparse
import fcntl
import os
import pty
import re
import struct
import subprocess
import sys
import termios
from html import escape
from pathlib import Path

IMAGE = Path("docs/images/demo.svg")
COLUMNS, LINES = 80, 45
CHARACTER, LINE = 8.4, 18
"""Width and height of a character in pixels, at a font size of 14."""
MARGIN, BAR = 18, 34
FONT = "ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', monospace"
BACKGROUND, FRAME, INK = "#10151c", "#2b3440", "#c9d3de"
STYLES = {
    "1": 'fill="#ffffff" font-weight="bold"',
    "31": 'fill="#ff8f7f"',
    "33": 'fill="#e8c874"',
    "36": 'fill="#6fd3e3"',
}
"""The SGR codes used by the demo: titles, refusals, notes and commands."""
STYLED = re.compile(r"\x1b\[(\d+)m(.*?)\x1b\[0m")


def main() -> None:
    """Write the picture to the given file."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--output", type=Path, default=IMAGE, help="SVG file to write  [default: %(default)s]"
    )
    output: Path = parser.parse_args().output
    output.write_text(picture(shown([sys.executable, "-m", "carrel", "demo"])), "utf-8")


def shown(command: list[str]) -> list[str]:
    """The lines that *command* shows on a terminal, with their styles."""
    controller, device = pty.openpty()
    fcntl.ioctl(device, termios.TIOCSWINSZ, struct.pack("HHHH", LINES, COLUMNS, 0, 0))
    environ = {name: value for name, value in os.environ.items() if name != "NO_COLOR"} | {"TERM": "xterm"}
    with subprocess.Popen(command, stdout=device, env=environ) as child:  # ours
        os.close(device)
        text = everything(controller).decode()
    if child.returncode:
        sys.exit(f"{text}\nthe demo failed, so there is no picture of it")
    return text.splitlines()


def everything(controller: int) -> bytes:
    """Read the terminal until the last process has closed it."""
    text = b""
    while True:
        try:
            text += os.read(controller, 2**16)
        except OSError:  # what Linux says then
            return text


def picture(lines: list[str]) -> str:
    """A window with the lines in it, as SVG."""
    width, height = round(COLUMNS * CHARACTER) + 2 * MARGIN, len(lines) * LINE + BAR + 2 * MARGIN
    rows = "\n".join(row(line, BAR + MARGIN + LINE * number + 13) for number, line in enumerate(lines))
    dots = "".join(f'<circle cx="{22 + 20 * n}" cy="{BAR / 2}" r="6" fill="{FRAME}"/>' for n in range(3))
    return f"""\
<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}"
 font-family="{FONT}" font-size="14" fill="{INK}">
<title>What carrel demo shows</title>
<rect width="{width}" height="{height}" rx="10" fill="{BACKGROUND}" stroke="{FRAME}"/>
{dots}<text x="{width / 2}" y="{BAR / 2 + 5}" text-anchor="middle">carrel demo</text>
{rows}
</svg>
"""


def row(line: str, y: int) -> str:
    """One line, stretched to the width of its characters in any font."""
    length = len(STYLED.sub(r"\2", line)) * CHARACTER
    pieces = STYLED.split(line)
    spans = escape(pieces[0], quote=False)
    for style, text, plain in zip(pieces[1::3], pieces[2::3], pieces[3::3], strict=True):
        spans += f"<tspan {STYLES[style]}>{escape(text, quote=False)}</tspan>{escape(plain, quote=False)}"
    return f'<text x="{MARGIN}" y="{y}" xml:space="preserve" textLength="{length:.1f}">{spans}</text>'


if __name__ == "__main__":
    main()
