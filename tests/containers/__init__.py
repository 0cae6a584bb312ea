"""The images and the compose file in a container engine: ``bin/test --containers``."""
