"""The experiment `long-transaction`; `experiment.py` says what it asks."""
