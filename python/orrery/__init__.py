"""Predicts what training a large model costs on a GPU cluster: time, memory, energy, money.

    import orrery as orr

    base = orr.load("gpt3-175b-1024-a100")
    run = base.replace({"/cluster/fabric/bandwidth": "800 Gb/s"}).simulate()
    print(run.step_time, run.mfu, run.bottleneck)

Three nouns: a `Scenario` asks, a `Run` answers, a `Sweep` answers many times. None of them changes.
The command's other questions are functions with the same arguments, each with its `Answer`: `plan`,
`buy`, `train`, `check`, `scale`, `contention`, `collective`, `validate`, `calibrate`, `execute`, `compare`,
`diagnose` and `export`. `report` writes one page of HTML of answers, `schema` gives the JSON Schema of a document.
"""

from orrery import catalogue
from orrery._core import __version__
from orrery.answer import Answer
from orrery.calibration import Calibration, calibrate
from orrery.collectives import Collectives, collective
from orrery.contention import Contention, contention
from orrery.errors import InputError, Interrupted, RunFailure
from orrery.execution import Execution, Step, execute
from orrery.launch import Launch, export
from orrery.measured import (
    Comparison,
    Diagnosis,
    RunComparison,
    Validation,
    compare,
    diagnose,
    validate,
)
from orrery.network import Network
from orrery.page import report, schema
from orrery.planning import (
    Claims,
    Plans,
    Purchases,
    Scales,
    Training,
    buy,
    check,
    plan,
    scale,
    train,
)
from orrery.quantities import Bytes, Seconds
from orrery.record import OutOfMemory, Range
from orrery.scenario import Run, Scenario, Sensitivities, load
from orrery.stored import StoredSweep, merge
from orrery.sweep import Point, Sweep, sweep
from orrery.trace import Trace

__all__ = [
    "Answer",
    "Bytes",
    "Calibration",
    "Claims",
    "Collectives",
    "Comparison",
    "Contention",
    "Diagnosis",
    "Execution",
    "InputError",
    "Interrupted",
    "Launch",
    "Network",
    "OutOfMemory",
    "Plans",
    "Point",
    "Purchases",
    "Range",
    "Run",
    "RunComparison",
    "RunFailure",
    "Scales",
    "Scenario",
    "Seconds",
    "Sensitivities",
    "Step",
    "StoredSweep",
    "Sweep",
    "Trace",
    "Training",
    "Validation",
    "__version__",
    "buy",
    "calibrate",
    "catalogue",
    "check",
    "collective",
    "compare",
    "contention",
    "diagnose",
    "execute",
    "export",
    "load",
    "merge",
    "plan",
    "report",
    "scale",
    "schema",
    "sweep",
    "train",
    "validate",
]
