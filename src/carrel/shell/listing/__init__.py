"""How `ls` sorts and lays out what it lists."""
