"""Reports: rows become tables and figures. Knows nothing of training."""
