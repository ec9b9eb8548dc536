"""The experiment `custom`; `experiment.py` says what it asks."""
