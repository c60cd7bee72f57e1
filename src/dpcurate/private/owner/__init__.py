"""For the owner alone: a first schema of a table, and how rows fit one. LOOKS AT THE DATA: NOT PRIVATE."""
