"""The lemmas of the paper and the proof of Chapter 13 as functions, and problems on which each constant is known.

statements.toml lists the lemmas, table.py reads it; lipschitz.py, descent.py, estimators.py and surrogate.py hold their
functions, statements.py all names together. proof.py has the proof, trials.py tries it on problems. families.py and
examples.py have the problems, constants.py their constants and those that the paper prints.
"""
