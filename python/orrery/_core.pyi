from collections.abc import Callable
from typing import final

__version__: str

@final
class Scenario:
    @property
    def json(self) -> str: ...
    @property
    def name(self) -> str: ...
    @property
    def file(self) -> str: ...
    def heading(self) -> str: ...
    def replace(self, changes: list[tuple[str, str]]) -> Scenario: ...
    def predict(self, *, headroom: float | None) -> Prediction: ...

@final
class Prediction:
    def json(self) -> str: ...
    def report(self, *, explain: bool, width: int) -> str: ...
    def timeline(self) -> str: ...
    def save_trace(self, path: str, *, operations: bool, kineto: bool) -> list[str]: ...

@final
class StoredSweep:
    @property
    def variants(self) -> int: ...
    def header(self, number: int, of: int) -> str: ...
    def range(self, number: int, of: int) -> tuple[int, int]: ...
    def lines(
        self, begin: int, end: int, *, threads: int, progress: Callable[[int, int], None] | None
    ) -> tuple[str, str, bool]: ...
    def run(
        self,
        store: str,
        *,
        number: int,
        of: int,
        threads: int,
        progress: Callable[[int, int], None] | None,
    ) -> tuple[str, str, bool]: ...

@final
class LineStore:
    @property
    def next(self) -> int: ...
    def append(self, lines: str) -> None: ...
    def close(self) -> None: ...

def stored_sweep(
    base: Scenario,
    vary: list[tuple[str, list[str]]],
    *,
    tokens: str | None,
    headroom: float | None,
    limit: int,
) -> StoredSweep: ...
def line_store(path: str, sweep: StoredSweep, number: int, of: int) -> LineStore: ...
def sensitivity(
    scenario: Scenario,
    *,
    headroom: float | None,
    svg: str | None,
    threads: int,
    progress: Callable[[int, int], None] | None,
) -> tuple[str, str, bool]: ...
def parse_shard(text: str) -> tuple[int, int]: ...
def merge(files: list[str], store: str) -> str: ...
def load(
    path_or_name: str | None,
    *,
    model: str | None,
    cluster: str | None,
    plan: str | None,
    software: str | None,
) -> Scenario: ...
def parse(text: str, name: str) -> Scenario: ...
def catalogue(kind: str) -> list[str]: ...
def page(documents: list[tuple[str, str | None]]) -> str: ...
def schema(name: str) -> str: ...
def made_with() -> str: ...
def export_launch(scenario: str, *, to: list[str]) -> tuple[str, str, bool]: ...
def plan(
    *,
    model: str,
    cluster: str,
    global_batch: int,
    seq_len: int,
    software: str | None,
    precision: str,
    fixed: str,
    exclude: str,
    objective: str,
    pareto: str | None,
    gap: float,
    tokens: str | None,
    deadline: str | None,
    data: str | None,
    headroom: float | None,
    top: int,
    network: str,
    threads: int,
    progress: Callable[[int, int], None] | None,
) -> tuple[str, str, bool]: ...
def train(
    scenario: str,
    *,
    tokens: str | None,
    deadline: str | None,
    budget: str | None,
    confidence: float,
    failures: str | None,
    all_in: bool,
    samples: int,
    seed: int,
    svg: str | None,
    threads: int,
    progress: Callable[[int, int], None] | None,
) -> tuple[str, str, bool]: ...
def check(claims: str, name: str) -> tuple[str, str, bool]: ...
def scale(
    scenario: str,
    *,
    gpus: str,
    scaling: str,
    svg: str | None,
    threads: int,
    progress: Callable[[int, int], None] | None,
) -> tuple[str, str, bool]: ...
def contention(
    scenario: str,
    *,
    page: str | None,
    threads: int,
    progress: Callable[[int, int], None] | None,
) -> tuple[str, str, bool]: ...
def collective(
    *,
    cluster: str,
    op: str,
    sizes: list[str],
    ranks: int | None,
    algo: str,
    proto: str,
    channels: int | None,
    counts: str,
    network: str,
    choice: str | None,
    env: list[str],
    against: list[str],
    timing: bool,
) -> tuple[str, str, bool]: ...
def buy(
    *,
    model: str,
    tokens: str,
    software: str | None,
    precision: str,
    headroom: float | None,
    deadline: str | None,
    budget: str | None,
    confidence: float,
    term: str,
    quote: list[str],
    gpus: str | None,
    global_batch: int | None,
    seq_len: int | None,
    data: str | None,
    between: str | None,
    nodes: list[str],
    top: int,
    threads: int,
    progress: Callable[[int, int], None] | None,
) -> tuple[str, str, bool]: ...
def validate(
    file: str,
    *,
    by: list[str],
    software: list[str],
    worst: int | None,
    page: str | None,
    record: str | None,
    leave_out: str | None,
    own: int,
    in_sample: bool,
    threads: int,
    progress: Callable[[int, int], None] | None,
) -> tuple[str, str, bool]: ...
def compare(predicted: str, measured: str) -> tuple[str, str, bool]: ...
def compare_run(
    scenario: str, *, files: list[str], step: str, skip: int | None, fit: str | None, run: str
) -> tuple[str, str, bool]: ...
def diagnose(
    *, files: list[str], step: str, skip: int | None
) -> tuple[str, str, bool]: ...
def execute(
    *,
    scenario: str | None,
    model: str | None,
    cluster: str | None,
    plan: str | None,
    software: str | None,
    set: list[tuple[str, str]],
    backend: str | None,
    ranks: int | None,
    steps: int,
    seed: int,
    data: list[str],
    init: str | None,
    export: str | None,
    checkpoint: str | None,
    checkpoint_every: str | None,
    resume: str | None,
    fabric: str | None,
    deadline: float | None,
    stall: float,
    trace: str | None,
    trace_detail: str | None,
    explain: bool,
    log: str | None,
    metrics_port: int | None,
    metrics_address: str | None,
    mlflow: str | None,
    watch: Callable[[str, str], None] | None,
) -> tuple[str, str, int]: ...
def calibrate(
    *,
    backend: str,
    budget: str,
    ranks: list[int],
    fabric: str,
    storage: str | None,
    cluster: str | None,
    widest: int,
    out: str | None,
    seed: int,
    progress: Callable[[int, int], None] | None,
) -> tuple[str, str, bool]: ...
def import_logs(
    *, logs: list[str], cluster: str | None, out: str | None
) -> tuple[str, str, bool]: ...
