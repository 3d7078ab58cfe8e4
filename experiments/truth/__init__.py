"""How often a player keeps what a position is worth, against the exact solver: truth, and not only Elo."""
