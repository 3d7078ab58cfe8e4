"""Speed, measured so that it can be compared: CPU time, medians of rounds, and a baseline beside every figure."""
