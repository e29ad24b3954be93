"""Settings from the environment, the configuration file and the defaults.

Start with `load`, then `table`, which lists every setting; `settings` holds the resulting values. Settings
are passed down as values, so that the layers that use them never read the environment.
"""
