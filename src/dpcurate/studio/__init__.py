"""The studio: from a table to a published page, in a browser on this machine."""
