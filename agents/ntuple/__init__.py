"""Evaluations learned from play: a weight for each configuration of a few small patterns of squares, summed.

Buro, "Experiments with Multi-ProbCut and a New High-Quality Evaluation Function for Othello", in "Games in AI
Research" (1999); the name is that of Lucas, "Learning to Play Othello with N-Tuple Systems", Australian Journal of
Intelligent Information Processing Systems 9 (2008).
"""
