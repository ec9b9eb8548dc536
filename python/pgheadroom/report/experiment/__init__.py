"""An experiment's result as tables and figures: draws the forms that the result declares."""
