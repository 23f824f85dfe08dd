"""Would a faster network pay, and is there a better plan?"""

import orrery as orr

base = orr.load("gpt3-175b-1024-a100")

for network in ("100 Gb/s", "200 Gb/s", "400 Gb/s"):
    run = base.replace({"/cluster/fabric/bandwidth": network}).simulate()
    print(f"{network}: {run.step_time}, {run.mfu:.0%} MFU, waiting on {run.bottleneck}")

free = base.replace({"/plan/data": None})  # as many replicas as there are GPUs for
grid = orr.sweep(free, {"/plan/tensor": [2, 4, 8], "/plan/pipeline": [4, 8, 16]})
best = grid.fits_memory().fastest()
print(best.explain(versus=base.simulate()))  # where each millisecond went
best.trace.save("best.json")  # Chrome trace: ui.perfetto.dev opens it
