"""The experiment `fpi-sawtooth`; `experiment.py` says what it asks."""
