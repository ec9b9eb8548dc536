"""The write-ahead log: what it was made of, and what it would have been otherwise."""
