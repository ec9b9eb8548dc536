"""The experiment `load-methods`; `experiment.py` says what it asks."""
