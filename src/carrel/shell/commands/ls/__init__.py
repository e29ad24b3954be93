"""The command `ls`.

Start with `command`, which turns options into `ListingOptions`, then `listing`, which reads directories;
`entry` renders and sorts names, `layout` arranges entries in lines and columns. File attributes as
text are in `shell.text.attributes`.
"""
