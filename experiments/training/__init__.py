"""Learning from self-play: games, replay, the learner, and the run that ties them together."""
