"""What a model sees of typical calls, good and bad: one file per set of calls and format, to be read.

The calls are in `calls`. `python -m tests.tools.transcripts.record` writes the files again; read the
difference before you commit it. The limit of an answer is low here, so that cuts are short to read.
"""
