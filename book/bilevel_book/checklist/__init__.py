"""The computed parts of the page "If you write a bilevel comparison".

changes.py says what each rule changed here, coverage.py simulates what intervals and margins are worth, and pictures.py
has the three pictures with their descriptions.
"""
