"""The experiment `commit-cost`; `experiment.py` says what it asks."""
