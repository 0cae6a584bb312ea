"""Programs at random whose last wait alone is for input, and what the holder says about them."""
