"""What makes a training run of a residual network small, and what it leaves, for tests of whole runs."""

import json
from pathlib import Path
from typing import Any

SMALL = [
    "experiment=quick_network",
    "variant=othello-4x4",
    "network.num_channels=4",
    "network.num_blocks=1",
    "network.num_head_channels=2",
    "search.num_simulations=4",
    "schedule.games_per_iteration=6",
    "learner.batch_size=16",
    "learner.samples_per_position=2",
    "evaluation.search.num_simulations=4",
]


def metrics_of(run: Path) -> list[dict[str, Any]]:
    """Returns the lines of a run's metrics."""
    return [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
