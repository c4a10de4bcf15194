"""Judges held against each other and against people: do they agree, where not, and does a decision change."""
