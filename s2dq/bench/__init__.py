"""Benchmarks: `cases` is the one list of named cases that the tests and the asv suite share."""
