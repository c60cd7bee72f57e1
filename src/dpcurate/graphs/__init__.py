"""Graph values and what is done to them: orientation, background knowledge, metrics, file formats."""
