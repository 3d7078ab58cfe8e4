"""What is run: training, evaluation, tournaments, games in the terminal, benchmarks. `experiments.cli` lists it."""
