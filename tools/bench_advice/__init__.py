"""
The proof that the advice is good: workloads, measured best, regret of each rule.

    workloads.py   profiles from a seed, and the manifest that pins them
    goal.py        the cost of a window, what is compared, when to stop
    cell.py        one workload at one fillfactor on a real server: load, settle, window
    live.py        a table that has lived, under load, as `observe` sees it
    rules.py       what others would set, from the counters alone
    record.py      what was measured, as lines of JSON
    score.py       regret
    page.py        docs/advice-accuracy.md and its picture

Run as `python -m bench_advice` with tools/ in the path (`make bench-advice`).
"""
