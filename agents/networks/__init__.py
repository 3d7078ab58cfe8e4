"""Policy and value networks, and how search asks them. Among players, only these and their checkpoints know torch."""
