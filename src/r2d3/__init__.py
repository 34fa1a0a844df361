"""R2D3: a recurrent agent that learns from a small share of demonstrations in its replay."""
