"""carrel as the workspace of an agent framework: one module a framework, each in an extra of its own."""
