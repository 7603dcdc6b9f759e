"""Whether this installation is whole, and whether this machine can run it: small checks that look for themselves.

Each check is a function without arguments that returns a :class:`~emuml.doctor.finding.Finding`. None of them trusts
another: what cannot be imported is found by the check that needs it, and the others go on.
"""
