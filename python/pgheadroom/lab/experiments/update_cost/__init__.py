"""The experiment `update-cost`; `experiment.py` says what it asks."""
