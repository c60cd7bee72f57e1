"""Pages and tables from rows of results, and nothing else."""
