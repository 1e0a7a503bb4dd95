"""The lemmas of the paper as functions, and problems on which each of their constants is known."""
