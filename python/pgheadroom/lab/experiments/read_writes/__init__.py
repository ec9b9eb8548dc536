"""The experiment `read-writes`; `experiment.py` says what it asks."""
