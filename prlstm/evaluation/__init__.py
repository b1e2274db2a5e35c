"""Evaluation: a model's accuracy over lengths, and its score."""

from prlstm.evaluation.score import LengthCounts, evaluate

__all__ = ["LengthCounts", "evaluate"]
