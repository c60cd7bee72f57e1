"""Constraint-based methods: the PC loop once (pc_search.py), edge tests as its parts."""
