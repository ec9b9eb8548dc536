"""The experiment `null-share`: CONTRIBUTING.md's example of a folder."""
