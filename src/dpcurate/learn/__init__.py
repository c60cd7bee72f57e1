"""Learners: pure code on the other side of the door. They see answers, never a row."""
