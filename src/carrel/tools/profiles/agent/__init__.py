"""carrel's own tools: `file_read`, `file_write`, `bash`, `python_executor` and so on, one module each.

Start with `file_write`, then `file_read`, the largest. Code shared with other profiles is in `operations`.
"""
