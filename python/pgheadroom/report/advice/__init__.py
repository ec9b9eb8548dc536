"""An advice: tables, statements, pictures, text and page."""
