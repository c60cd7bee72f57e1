"""What was found: the values that learners hand over, and what is made of them for a reader."""
