"""Events that want a person's attention, as rows, and the ways in which people are told of them."""
