"""Places to which a server sends messages, as tests run them."""
