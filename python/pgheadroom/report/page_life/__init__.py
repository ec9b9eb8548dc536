"""What happened to a page, as text, picture and page."""
