"""How `ContainerFiles` works on files in a container.

Primitives that follow no link, by a shell script in the container or by the engine's archives. Start with
`primitives`, then `reading` and `write_target`. Paths are resolved on the host, never by the container's
kernel, and quota and journal are charged in `carrel.containers.files`, not here.
"""
