"""``python -m papers.erasurehead``: see ``reproduce.py``."""

from __future__ import annotations

import sys

from papers.erasurehead.reproduce import main

if __name__ == "__main__":
    sys.exit(main())
