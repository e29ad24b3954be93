"""The command `find`.

Start with `command`: `expression` parses the words into one predicate, composed of those in `predicates`;
`search` is the state that they share. `Context.walk` walks the tree; nothing here follows links.
"""
