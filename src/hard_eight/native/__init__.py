"""Hot loops, compiled by numba."""
