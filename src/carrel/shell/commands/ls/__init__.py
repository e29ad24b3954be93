"""The command `ls`.

Start with `command`, which turns options into `ListingOptions`, then `listing`, which reads directories;
`entry` is one name and its sort order, `layout` arranges entries in lines and columns. File attributes as
text are in `shell.text.attributes`.
"""
