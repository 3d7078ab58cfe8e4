"""Games and endgame problems on disk, in the formats that Othello programs exchange."""
