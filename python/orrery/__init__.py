"""Predicts what training a large model costs on a GPU cluster: time, memory, energy, money.

    import orrery as orr

    base = orr.load("gpt3-175b-1024-a100")
    run = base.replace({"/cluster/fabric/bandwidth": "800 Gb/s"}).simulate()
    print(run.step_time, run.mfu, run.bottleneck)

Three nouns: a `Scenario` asks, a `Run` answers, a `Sweep` answers many times. None of them changes.
"""

from orrery import catalogue
from orrery.errors import InputError
from orrery.quantities import Bytes, Seconds
from orrery.run import OutOfMemory, Run
from orrery.scenario import Scenario, load
from orrery.sweep import Point, Sweep, sweep
from orrery.trace import Trace

__all__ = [
    "Bytes",
    "InputError",
    "OutOfMemory",
    "Point",
    "Run",
    "Scenario",
    "Seconds",
    "Sweep",
    "Trace",
    "catalogue",
    "load",
    "sweep",
]
