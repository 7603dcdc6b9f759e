"""ErasureHead, arXiv:1901.09671: its experiments as configurations, with numbers that must come out."""
