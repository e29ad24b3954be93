"""Tests of single commands, for what text cases cannot show."""
