"""The command line, `r2d3`."""
