"""The command `sort`.

Start with `command`; `keys` parses `-k` and extracts keys from lines, `order` compares them. The order of
version numbers is in `shell.text.version_order`, because `ls` has it too.
"""
