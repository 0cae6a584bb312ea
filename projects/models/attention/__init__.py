"""Events that want a person's attention, and how people are told of them."""
