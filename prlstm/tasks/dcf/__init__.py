"""Deterministic context-free languages: a stack is needed."""
