"""Reports on finished runs: a box in the terminal, one self-contained HTML page, and figures. They read, never run."""
