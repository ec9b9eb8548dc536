"""The experiment `cluster-decay`; `experiment.py` says what it asks."""
