"""Stop rules of single codes, which know more of a round than how many answered."""
