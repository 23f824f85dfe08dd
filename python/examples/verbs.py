"""Plan, execute what is small enough for this machine, and compare it with its prediction."""

import orrery as orr

plans = orr.plan(
    model="llama3.1-8b", cluster="dgx-h100 x 1", global_batch=64, seq_len=4096, progress=False
)
print(plans.to_frame()[["flag", "step_time_s", "mfu"]].head(3))

small = "llama-tp2"  # a Llama of megabytes, cut over two ranks
orr.load(small).simulate().trace.save("predicted.json")
run = orr.execute(small, steps=3, trace="measured.json", progress=False)
print(run)
print(orr.compare("predicted.json", "measured.json").report)
