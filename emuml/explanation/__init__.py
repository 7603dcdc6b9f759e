"""Answers before a run: which code suits a cluster, at equal work and in equal time, from theory and sampled rounds.

``candidates`` (which codes), ``sampling`` (what one of them does round by round), ``floors`` (where training on its
gradients settles), ``codes`` (all of it for an experiment), ``words`` (the tables).
"""
