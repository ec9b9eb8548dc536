"""The experiment `clients-scale`; `experiment.py` says what it asks."""
