"""Programs and the image's own Python in a Docker container on the files of a workspace.

Start with `runtime`, then `run`, which follows one program from start to end; `binding` says which
container belongs to a workspace. What the engine is asked belongs to `carrel.containers`; nothing here
imports the Docker client.
"""
