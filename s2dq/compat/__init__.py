"""The operators under each system's own names, argument order and rules."""
