"""Servers on which all is well: what the doctor says after ten minutes of load."""
