"""`carrel doctor`: what carrel needs on this machine, and what to do where it is missing.

Start with `command`; `facts` and `container_facts` look, `findings` judges what they saw, and `command`
prints it. Nothing is created or changed while looking, and no fact is judged where it is collected.
"""
