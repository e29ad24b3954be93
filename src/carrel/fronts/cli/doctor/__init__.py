"""`carrel doctor`: check what carrel needs on this machine, with a remedy for everything missing.

Start with `command`; `facts` and `container_facts` collect facts, `findings` judges them, and `command`
prints the findings. Collecting creates and changes nothing, and judges nothing.
"""
