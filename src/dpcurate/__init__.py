"""Causal graph discovery with a privacy guarantee that is true."""
