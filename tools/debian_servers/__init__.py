"""Servers of Debian's archive for the tests, unpacked without touching the system."""
