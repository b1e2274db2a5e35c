"""The paper's tables and figures as data: which runs, which measurements, which rows."""
