"""A proof or a prediction: tables, figures, findings, the answer."""
