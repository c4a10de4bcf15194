from hypothesis import settings

# A busy machine is no failure: the tests that are about time say so themselves.
settings.register_profile("airjudge", deadline=None)
settings.load_profile("airjudge")
