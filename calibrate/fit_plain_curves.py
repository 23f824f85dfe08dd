#!/usr/bin/env python3
"""Refits the plain GEMM curves of hardware/catalogue/gpus from a table of measured kernels.

    t = overhead + (x^q + y^q)^(1/q) [+ 3 m k / (quantise_share * bandwidth)]
    x = 2 m n k / (compute_share * peak),  y = bytes / (memory_share * bandwidth)

The bracket is there for tables whose rows contain the pass that quantises the activations (column
`includes`); a training plan prices that pass as an operation of its own, so the catalogue takes the
shares of such a fit and the overhead of bf16. Peaks and bandwidths come from the catalogue.

    fit_plain_curves.py FILE.csv [--catalogue hardware/catalogue/gpus] [--json]

FILE has columns kernel, gpu, dtype, m, n, k_or_seq, time_us, implementation, includes. Printed with
each fit: rows, and the error in per cent with each curve (one n, k and all its m) left out in turn
with its tenth of the curves. Source: soft-L1 loss on log time, which a few noisy rows do not move.
"""

import argparse
import csv
import json
import pathlib
import re
import sys
from dataclasses import dataclass

import numpy as np
from scipy.optimize import least_squares

BYTES = {"fp32": 4.0, "bf16": 2.0, "fp16": 2.0, "fp8": 1.0, "fp4": 0.5625}  # fp4: a scale per 16
DTYPE_OF = {"nvfp4": "fp4"}
SOFT_L1_SCALE = 0.03  # of log time: residuals beyond 3 % count linearly
FOLDS = 10
SCALES = {"TFLOP/s": 1e12, "TB/s": 1e12, "GB/s": 1e9}


@dataclass(frozen=True)
class Table:
    """The rows of one GPU, dtype and implementation, in SI units."""

    gpu: str
    dtype: str
    m: np.ndarray
    n: np.ndarray
    k: np.ndarray
    seconds: np.ndarray
    quantises: bool
    peak: float
    bandwidth: float

    @property
    def flops(self):
        return 2.0 * self.m * self.n * self.k

    @property
    def traffic(self):
        """Operands in the format of the table, the result in two bytes."""
        size = BYTES[self.dtype]
        return size * (self.m * self.k + self.k * self.n) + 2.0 * self.m * self.n

    @property
    def train(self):
        """Rows that matter in training."""
        return (self.m >= 1024) & (self.seconds >= 20e-6)


def si(text):
    number, unit = re.fullmatch(r"([\d.]+) (\S+)", text).groups()
    return float(number) * SCALES[unit]


def tables(path, catalogue):
    groups = {}
    with open(path, newline="") as file:
        for row in csv.DictReader(file):
            if row["kernel"] != "gemm" or not row["time_us"] or row["set_aside"]:
                continue
            if row["implementation"] != "trtllm-linear":
                continue
            key = (row["gpu"], DTYPE_OF.get(row["dtype"], row["dtype"]), bool(row["includes"]))
            shape = [float(row[c]) for c in ("m", "n", "k_or_seq", "time_us")]
            groups.setdefault(key, []).append(shape)
    for (gpu, dtype, quantises), rows in sorted(groups.items()):
        entry = json.loads((catalogue / f"{gpu}.json").read_text())
        m, n, k, micros = np.array(rows).T
        yield Table(gpu, dtype, m, n, k, micros * 1e-6, quantises,
                    si(entry["dense_peak"][dtype]), si(entry["memory_bandwidth"]))


def predicted(parameters, table, rows):
    """Seconds by the formula; parameters are compute, memory, log us, log (q - 1), quantise."""
    compute, memory, overhead, corner, quantise = parameters
    x = table.flops[rows] / (compute * table.peak)
    y = table.traffic[rows] / (memory * table.bandwidth)
    q = 1.0 + np.exp(corner)
    larger, smaller = np.maximum(x, y), np.minimum(x, y)
    time = np.exp(overhead) * 1e-6 + larger * (1.0 + (smaller / larger) ** q) ** (1.0 / q)
    if table.quantises:
        time = time + 3.0 * table.m[rows] * table.k[rows] / (quantise * table.bandwidth)
    return time


def fit(table, rows):
    def residual(parameters):
        return np.log(predicted(parameters, table, rows) / table.seconds[rows])

    start = [0.7, 0.8, np.log(5.0), np.log(2.0), 0.4]
    low = [0.1, 0.1, np.log(0.5), np.log(0.2), 0.05]
    high = [1.0, 1.0, np.log(40.0), np.log(9.0), 1.0]
    found = least_squares(residual, start, bounds=(low, high), loss="soft_l1", f_scale=SOFT_L1_SCALE)
    return found.x


def left_out_error(table):
    """|error| in per cent of every row, from a fit that has not seen its curve."""
    curves = {}
    for row, shape in enumerate(zip(table.n, table.k)):
        curves.setdefault(shape, []).append(row)
    order = sorted(curves)
    np.random.default_rng(0).shuffle(order)
    error = np.empty(len(table.m))
    for fold in range(FOLDS):
        out = np.zeros(len(table.m), dtype=bool)
        for shape in order[fold::FOLDS]:
            out[curves[tuple(shape)]] = True
        parameters = fit(table, ~out)
        error[out] = 100.0 * np.abs(predicted(parameters, table, out) / table.seconds[out] - 1.0)
    return error


def report(table):
    every = np.ones(len(table.m), dtype=bool)
    compute, memory, overhead, corner, quantise = fit(table, every)
    error = left_out_error(table)
    train = error[table.train]
    return {
        "gpu": table.gpu,
        "dtype": table.dtype,
        "rows": len(table.m),
        "compute_share": round(float(compute), 3),
        "memory_share": round(float(memory), 3),
        "overhead_us": round(float(np.exp(overhead)), 2),
        "corner": round(float(1.0 + np.exp(corner)), 2),
        "quantise_share": round(float(quantise), 3) if table.quantises else None,
        "median_error_pct": round(float(np.median(error)), 1),
        "p90_error_pct": round(float(np.percentile(error, 90)), 1),
        "train_median_error_pct": round(float(np.median(train)), 1),
        "train_p90_error_pct": round(float(np.percentile(train, 90)), 1),
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("file", help="CSV of measured kernels")
    home = pathlib.Path(__file__).resolve().parent.parent
    parser.add_argument("--catalogue", type=pathlib.Path, default=home / "hardware/catalogue/gpus")
    parser.add_argument("--json", action="store_true", help="one JSON document on stdout")
    arguments = parser.parse_args()
    fits = [report(table) for table in tables(arguments.file, arguments.catalogue)]
    if not fits:
        sys.exit(f"{arguments.file}: no rows of kernel gemm, implementation trtllm-linear")
    if arguments.json:
        print(json.dumps(fits, indent=1))
        return
    columns = list(fits[0])
    print("  ".join(columns))
    for one in fits:
        print("  ".join(str(one[c]).rjust(len(c)) for c in columns))


if __name__ == "__main__":
    main()
