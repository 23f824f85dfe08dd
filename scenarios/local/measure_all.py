#!/usr/bin/env python3
"""Runs every scenario of this folder that a CPU executes, and prints measured next to predicted.

    build/orrery calibrate --budget 60s --out machine.json
    scenarios/local/measure_all.py build/orrery --cluster machine.json

One line a scenario: step time (median of --steps, and its ratio where the ranks have a core each),
peak memory, and operations of the recorded step that one of the two traces lacks. Exit code 1 where
memory is off by more than 3 %, time by more than 15 % (--time checks it, on a quiet machine with a
calibrated cluster), or an operation finds no partner.
"""

import argparse
import json
import math
import os
import pathlib
import subprocess
import sys

MEMORY_LIMIT = 0.03
TIME_LIMIT = 0.15


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("orrery", help="the command")
    parser.add_argument("--cluster", help="a calibration of this machine")
    parser.add_argument("--steps", type=int, default=5)
    parser.add_argument("--time", action="store_true", help="time decides, too")
    parser.add_argument("--only", default="", help="scenarios whose name contains this")
    return parser.parse_args()


def scenarios(only: str) -> list[pathlib.Path]:
    """The scenarios of this folder whose cluster is made of CPU cores."""
    folder = pathlib.Path(__file__).parent
    every = sorted(folder.glob("*.json"))
    mine = [each for each in every if "cpu" in str(json.loads(each.read_text())["cluster"])]
    return [each for each in mine if only in each.stem]


def ranks_of(scenario: pathlib.Path) -> int:
    plan = json.loads(scenario.read_text())["plan"]
    return math.prod(plan.get(axis, 1) for axis in ("tensor", "pipeline", "data", "context"))


def execute(asked: argparse.Namespace, scenario: pathlib.Path) -> tuple[dict | None, str]:
    """The JSON of a run, or None and why not. --cluster is passed only if every rank has a core."""
    command = [asked.orrery, "execute", str(scenario), "--steps", str(asked.steps), "--explain",
               "--json"]
    if asked.cluster and ranks_of(scenario) <= (os.cpu_count() or 1):
        command += ["--cluster", asked.cluster]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    if run.returncode != 0:
        return None, (run.stderr.strip().splitlines() or ["no message"])[-1]
    return json.loads(run.stdout), ""


def main() -> int:
    asked = arguments()
    cores = os.cpu_count() or 1
    wrong = 0
    print(f"{'scenario':<22} ranks  predicted   measured  ratio  memory: predicted, measured, "
          "off  unmatched")
    for scenario in scenarios(asked.only):
        run, why = execute(asked, scenario)
        if run is None:
            print(f"{scenario.stem:<22} {why}")
            wrong += 1
            continue
        predicted, measured = run["predicted_step_time_s"], run["median_step_time_s"]
        ratio = measured / predicted
        fits = run["ranks"] <= cores
        memory = [run[key] for key in ("predicted_peak_memory_bytes", "peak_memory_bytes")]
        off = memory[1] / memory[0] - 1
        unmatched = run["comparison"]["unmatched"]
        slow = asked.time and fits and abs(ratio - 1) > TIME_LIMIT
        bad = slow or abs(off) > MEMORY_LIMIT or unmatched > 0
        wrong += bad
        print(f"{scenario.stem:<22} {run['ranks']:>5} {predicted:>8.4f} s {measured:>8.4f} s "
              f"{f'{ratio:.2f}' if fits else '-':>6} {memory[0] / 2**20:>14.2f} MiB "
              f"{memory[1] / 2**20:>8.2f} MiB {off:>+6.1%} {unmatched:>6}"
              f"{'   <--' if bad else ''}", flush=True)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
