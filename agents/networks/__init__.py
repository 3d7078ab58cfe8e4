"""Policy and value networks, and how search asks them. The one folder of players that knows torch."""
