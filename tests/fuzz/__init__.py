"""A fuzzer: random problems, every algorithm that can do them, every answer compared.

    python -m tests.fuzz --seconds 300 --seed 1             # or: make fuzz SECONDS=300 SEED=1
    python -m tests.fuzz --seed 1 --case 1234               # one problem again
    python -m tests.fuzz --seed 1 --regime narrow           # two and three columns, leaves many bandwidths wide

Read `cases.py` for what is drawn, `checks.py` for what is compared, `truth.py` for the sums in long double.
"""
