"""Classic search: alpha-beta some plies ahead, and to the end of the game."""
