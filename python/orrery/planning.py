"""Searches plans and clusters, predicts whole trainings, judges claims, scales a scenario."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from typing import Any, final

from orrery import _core
from orrery.answer import Answer, answered
from orrery.heading import named
from orrery.parts import Part, path_of, required, text_of, words_of
from orrery.plots import Plotted
from orrery.progress import Progress, progress_callback
from orrery.scenario import Run, Scenario, load


def _varied(rows: list[dict[str, Any]], keys: Iterable[str]) -> list[str]:
    """The keys that have several values."""
    return [key for key in keys if len({str(row.get(key)) for row in rows}) > 1]


@final
class Plans(Plotted, Answer):
    """The best plans of a model on a cluster, best first. Made by `orrery.plan`."""

    _rows = "plans"

    @property
    def fits(self) -> bool:
        """Whether any plan fits in memory."""
        return bool(self._values["fits"])

    @property
    def best(self) -> dict[str, Any] | None:
        """The best plan, as `orrery.load(plan=...)` takes it; None where nothing fits."""
        plans = self["plans"]
        return dict(plans[0]["plan"]) if plans else None

    def _plot_rows(self) -> list[dict[str, Any]]:
        found = []
        for each in self._values["plans"]:
            plan = {key: str(v) if isinstance(v, list) else v for key, v in each["plan"].items()}
            label = ", ".join(each["flag"].split(",")[:6])
            found.append({**plan, **{k: v for k, v in each.items() if k != "plan"}, "label": label})
        return found

    def _plot_factors(self) -> list[str]:
        plans = self._values["plans"]
        return _varied(self._plot_rows(), plans[0]["plan"] if plans else ())

    def _plot_title(self) -> str:
        return f"Plans for {self._values['model']} on {self._values['cluster']}"

    def _plot_run(self) -> Run:
        if self.best is None:
            raise ValueError("no plan fits")
        return load(**self._asked, plan=self.best).simulate()


@final
class Purchases(Plotted, Answer):
    """Clusters to rent or own by days and dollars, best first. Made by `orrery.buy`."""

    _rows = "choices"

    @property
    def meets(self) -> bool:
        """Whether any choice meets deadline and budget."""
        return bool(self._values["meets"])

    def _plot_rows(self) -> list[dict[str, Any]]:
        rows = []
        for each in self._values["choices"]:
            cost = each["cost_usd"]
            figures = {"days": each["days"]["p50"], "cost_usd": cost["p50"] if cost else None}
            rows.append({**each["plan"], **each, **figures, "label": each["cluster"]})
        return rows

    def _plot_factors(self) -> list[str]:
        keys = ("node", "gpus", "tensor", "pipeline", "context", "expert", "zero", "recompute")
        return _varied(self._plot_rows(), keys)

    def _plot_title(self) -> str:
        return f"Clusters for {self._values['model']}"

    def _plot_run(self) -> Run:
        if not self._values["choices"]:
            raise ValueError("no cluster runs it")
        best = self._values["choices"][0]
        return load(**self._asked, cluster=best["cluster"], plan=best["plan"]).simulate()

    def _plot_figures(self) -> tuple[str, str]:
        return "days", "cost_usd"


@final
class Training(Answer):
    """A whole training: days, dollars and energy as ranges. Made by `orrery.train`."""

    _rows = "phases"

    @property
    def meets(self) -> bool:
        """Whether it fits, and keeps deadline and budget with the confidence asked for."""
        return bool(self._values["meets"])


@final
class Claims(Answer):
    """Claims with their verdicts. Made by `orrery.check`."""

    _rows = "claims"


@final
class Scales(Answer):
    """One scenario on more and more GPUs. Made by `orrery.scale`."""

    _rows = "points"


@named("plan")
def plan(
    *,
    model: Part,
    cluster: Part,
    global_batch: int,
    seq_len: int,
    software: Part | None = None,
    precision: str = "bf16",
    fixed: str = "",
    exclude: str = "",
    objective: str = "time",
    pareto: str | None = None,
    gap: float = 0.0,
    tokens: str | None = None,
    deadline: str | None = None,
    data: Part | None = None,
    headroom: float | None = None,
    top: int = 10,
    network: str = "auto",
    threads: int | None = None,
    progress: bool | Progress | None = None,
    partial: bool = False,
) -> Plans:
    """The best plans for a cluster, and why each of the others is slower: `orrery plan`.

    global_batch  sequences of one step, of `seq_len` tokens each
    fixed         fields that every plan has: "task=lora,lora_targets=qkv:projection,moments=int8"
    exclude       values that no plan has: "zero=0,3,dispatcher=hybridep"
    objective     "time", "cost", "energy" or "memory" of a step, or "days"
    pareto        another objective: also the Pareto front of both, in `["front"]`
    gap           share by which another plan may be better when the search ends; 0: none is, and
                  `["proven"]` says so
    tokens        to train on, "300B"; with a deadline ("30d") plans that take longer are left out
    data          what steps read: member `data` of a scenario, or a file with it
    headroom      share of a GPU's memory to leave free; a plan that leaves less fits tightly
    top           how many plans to list
    network       "auto": evaluate the listed plans with their traffic on links and sort by the
                  result; "static": keep the order of the search
    threads       as many as there are cores by default
    progress      as `orrery.sweep` takes it
    Other Python threads keep running. Errors: InputError; on Ctrl-C `orrery.Interrupted` with the
    best of the plans so far, or, with `partial`, these plans.
    """
    found = _core.plan(
        model=required(model),
        cluster=required(cluster),
        global_batch=global_batch,
        seq_len=seq_len,
        software=text_of(software),
        precision=precision,
        fixed=fixed,
        exclude=exclude,
        objective=objective,
        pareto=pareto,
        gap=gap,
        tokens=tokens,
        deadline=deadline,
        data=text_of(data),
        headroom=headroom,
        top=top,
        network=network,
        threads=threads or 0,
        progress=progress_callback(progress, "plans"),
    )
    asked = {"model": model, "cluster": cluster, "software": software}
    return answered(Plans, found, "the best plans", partial=partial, asked=asked)


@named("buy")
def buy(
    *,
    model: Part,
    tokens: str,
    software: Part | None = None,
    precision: str = "bf16",
    headroom: float | None = None,
    deadline: str | None = None,
    budget: str | None = None,
    confidence: float = 0.8,
    term: str = "on-demand",
    quote: str | Iterable[str] = (),
    gpus: str | int | None = None,
    global_batch: int | None = None,
    seq_len: int | None = None,
    data: Part | None = None,
    between: dict[str, Any] | str | None = None,
    nodes: str | Iterable[str] = (),
    top: int = 10,
    threads: int | None = None,
    progress: bool | Progress | None = None,
    partial: bool = False,
) -> Purchases:
    """Clusters to rent for a training run, with days and dollars: `orrery buy`.

    tokens    to train on: "300B"
    deadline  the longest time ("30d"), and budget the most money ("$5M"), kept with a confidence
    term      "on-demand", "1y", "3y" (reserved), "spot", "own", "mix" or "3y=0.6,spot=0.4"
    quote     prices of a GPU-hour: "2.10/h", "p5=2.10/h"
    gpus      sizes: 512, "96,768", "64:1024:x2"; by default powers of two of nodes
    data      what steps read, as `orrery.plan` takes it
    between   zones and the network between them: {"zones": 2, "bandwidth": "100 Gb/s",
              "dollars_per_gb": 0.01}
    nodes     node types to consider; by default all that are rented
    top       how many choices the report shows; the JSON has all
    The other arguments are those of `orrery.plan`. Errors: InputError; on Ctrl-C
    `orrery.Interrupted` with the choices so far, or, with `partial`, these choices.
    """
    found = _core.buy(
        model=required(model),
        tokens=tokens,
        software=text_of(software),
        precision=precision,
        headroom=headroom,
        deadline=deadline,
        budget=budget,
        confidence=confidence,
        term=term,
        quote=words_of(quote),
        gpus=None if gpus is None else str(gpus),
        global_batch=global_batch,
        seq_len=seq_len,
        data=text_of(data),
        between=text_of(between),
        nodes=words_of(nodes),
        top=top,
        threads=threads or 0,
        progress=progress_callback(progress, "clusters"),
    )
    asked = {"model": model, "software": software}
    return answered(Purchases, found, "the clusters", partial=partial, asked=asked)


@named("train")
def train(
    scenario: Scenario | Part,
    *,
    tokens: str | None = None,
    deadline: str | None = None,
    budget: str | None = None,
    confidence: float = 0.8,
    failures: str | None = None,
    all_in: bool = False,
    samples: int = 2000,
    seed: int = 1,
    svg: str | os.PathLike[str] | None = None,
    threads: int | None = None,
    progress: bool | Progress | None = None,
) -> Training:
    """A training from its first to its last step, failures and restarts included: `orrery train`.

    tokens    to train on: "15T" (the scenario's)
    failures  that you counted on this cluster: "14/30d"
    all_in    as published runs: their hours over those of the steps alone
    svg       a file for the picture
    The rest of the run is member `run` of the scenario. Errors: InputError; on Ctrl-C
    `orrery.Interrupted`.
    """
    found = _core.train(
        required(scenario.json if isinstance(scenario, Scenario) else scenario),
        tokens=tokens,
        deadline=deadline,
        budget=budget,
        confidence=confidence,
        failures=failures,
        all_in=all_in,
        samples=samples,
        seed=seed,
        svg=path_of(svg),
        threads=threads or 0,
        progress=progress_callback(progress, "simulated runs"),
    )
    return answered(Training, found, "the runs")


@named("check")
def check(claims: str | os.PathLike[str] | Iterable[dict[str, Any]]) -> Claims:
    """Claims judged against bounds of physics and dated prices: `orrery check`.

    claims  a JSON file, or a list of claims
    Errors  InputError
    """
    if isinstance(claims, (str, os.PathLike)):
        name = os.fspath(claims)
        with open(name, encoding="utf-8") as file:
            text = file.read()
    else:
        name, text = "claims", json.dumps(list(claims))
    return answered(Claims, _core.check(text, name), "the claims")


@named("scale")
def scale(
    scenario: Scenario | Part,
    *,
    gpus: str | Iterable[int],
    scaling: str = "weak",
    svg: str | os.PathLike[str] | None = None,
    threads: int | None = None,
    progress: bool | Progress | None = None,
    partial: bool = False,
) -> Scales:
    """Step time and efficiency against GPUs: `orrery scale`.

    Tensor, context and pipeline degrees are kept; data-parallel replicas are added.

    gpus     "64:16384:x2" (each twice the one before), "64:512:64" (in steps), or the numbers
    scaling  "weak": constant sequences per GPU; "strong": constant global batch
    svg      a file for the picture
    A number of GPUs that cannot be predicted says why (`refused`). Errors: InputError; on
    Ctrl-C `orrery.Interrupted` with the points so far, or, with `partial`, these points.
    """
    found = _core.scale(
        required(scenario.json if isinstance(scenario, Scenario) else scenario),
        gpus=gpus if isinstance(gpus, str) else ",".join(str(each) for each in gpus),
        scaling=scaling,
        svg=path_of(svg),
        threads=threads or 0,
        progress=progress_callback(progress, "points"),
    )
    return answered(Scales, found, "the points", partial=partial)
