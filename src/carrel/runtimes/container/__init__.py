"""Programs and the image's Python in a Docker container on the files of a workspace.

Start with `runtime`, then `run`, which follows one program from start to end; `binding` finds the container
of a workspace. Requests to the Docker engine belong to `carrel.containers`; nothing here imports the Docker
client.
"""
