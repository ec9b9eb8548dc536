"""
Advising: an observed profile becomes, per table, causes, a curve, a verdict.

    advice.py   the advice as a value, and its file's form
    policy.py   goals, prices, what a setting costs
"""
