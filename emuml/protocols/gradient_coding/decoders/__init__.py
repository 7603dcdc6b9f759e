"""Decoders: weights for the answers of a set of workers, each with its error and how much it amplifies rounding."""
