"""Cells of a table made on the nodes of a Ray cluster. Ray is imported by its modules alone."""
