"""The text editor and the shell that Claude models are trained on."""
