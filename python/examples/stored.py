"""A sweep in a file: begun, continued and read."""

import orrery as orr

base = orr.load("llama3-8b-8-h100")
vary = {
    "/plan/micro_batch": [1, 2, 4],
    "/plan/recompute": ["none", "full"],
    "/cluster/fabric/bandwidth": [f"{rate} Gb/s" for rate in (100, 200, 400)],
}
swept = orr.sweep(base, vary, store="sweep.jsonl", tokens="1T")
best = swept.fastest()
print(best["values"], best["step_time_s"], best["days"])

parts = [orr.sweep(base, vary, store=f"{i}.jsonl", shard=(i, 2), tokens="1T").path for i in (1, 2)]
print(orr.merge(parts, "merged.jsonl"))  # the bytes of sweep.jsonl
