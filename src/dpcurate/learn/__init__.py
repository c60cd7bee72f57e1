"""Learners: pure code on the other side of the queryable. They see answers, never a row."""
