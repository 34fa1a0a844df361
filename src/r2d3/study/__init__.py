"""Studies: programs that make data or figures, around the agent and not part of it."""
