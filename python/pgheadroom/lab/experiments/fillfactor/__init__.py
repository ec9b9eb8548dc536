"""The experiment `fillfactor`; `experiment.py` says what it asks."""
