"""The login of people: the password, and the limit of attempts."""
