"""Statistics: each a transformation of tables into integers with a proved sensitivity, made from public facts alone.

Longer proofs are in docs/proofs/sensitivity.md.
"""
