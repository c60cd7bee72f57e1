"""The curator as a service: a server that holds the table, its analysts' tokens, the owner's consent and a log."""
