"""Schemas of public applications through observe, predict and prove (docs/public-schemas.md)."""
