"""The lemmas of the paper as functions, and problems on which each of their constants is known.

statements.toml lists the lemmas, table.py reads it; lipschitz.py, descent.py, estimators.py and surrogate.py hold their
functions, statements.py all names together. families.py and examples.py have the problems, constants.py the constants
of the theorems.
"""
