"""A curator on a server as one more thing that a study works on, and the values that travel between the two."""
