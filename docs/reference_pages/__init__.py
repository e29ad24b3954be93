"""The reference pages that follow from the code, one module a page; each has `make`."""
