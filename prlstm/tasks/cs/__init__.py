"""Context-sensitive languages: a bounded tape is needed."""
