"""The experiment `index-walkthrough`; `experiment.py` says what it asks."""
