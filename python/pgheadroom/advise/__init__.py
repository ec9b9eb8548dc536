"""
Advising: an observed profile becomes, per table, causes, a curve, a verdict.

    advice.py   the advice as a value, and its file's form
    policy.py   goals, prices, what a setting costs
    causes.py   why each update was HOT or not: by updates.py (what was counted), blame.py (which
                index), room.py (why a page had none), row.py (lengths, WAL bytes)
"""
