"""What placement by the extension `clustered_heap` costs and gives, beside plain heap."""
