"""The command `find`.

Start with `command`: `expression` parses the words into one predicate, made of those in `predicates`;
`search` is the state that they share. Walking the tree is `Context.walk`, and none of this follows links.
"""
