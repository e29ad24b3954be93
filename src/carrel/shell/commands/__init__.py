"""The commands, one file each; `carrel.shell.table` lists them."""
