"""The pages on which people see, replay and touch what agents do."""
