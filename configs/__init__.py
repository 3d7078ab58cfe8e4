"""What `reversi train` composes its configuration from. A package, so that an installed copy finds it."""
