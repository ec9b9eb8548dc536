"""The experiment `insert-rate`; `experiment.py` says what it asks."""
