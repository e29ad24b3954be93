"""Run guest code on the files of a workspace."""
