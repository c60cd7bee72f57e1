"""Constraint-based methods: the PC loop once (search.py), edge tests as its parts."""
