"""Who runs where, and nothing else."""
