"""Files that programs of others could have put there, or changed."""
