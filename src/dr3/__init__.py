"""dr3: train, watch and repair value functions that are learned from logged data."""
