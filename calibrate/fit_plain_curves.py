#!/usr/bin/env python3
"""Refits the plain curves of hardware/catalogue/gpus from a table of measured kernels.

GEMM, one curve for each GPU and dtype:

    t = overhead + (x^q + y^q)^(1/q) [+ 3 m k / (quantise_share * bandwidth)]
    x = 2 m n k / (compute_share * peak),  y = bytes / (memory_share * bandwidth)

The bracket is there for tables whose rows contain the pass that quantises the activations (column
`includes`); a training plan prices that pass as an operation of its own, so the catalogue takes the
shares of such a fit and the overhead of bf16.

Attention, one curve for each GPU and kernel, on useful FLOPs (half of them with a causal mask):

    share(s) = E_head_size / (1 + half_length (1 + causal * causal_penalty) / s)

Rows of forward and backward together are split with backward 2.5 times the FLOPs of forward at
0.92 of its share, the ratio that FlashAttention-2 has on H100 where both are published.

    fit_plain_curves.py FILE.csv [--catalogue hardware/catalogue/gpus] [--json]

FILE has columns kernel, gpu, dtype, m, n, k_or_seq, head_dim, causal, time_us, tflops,
implementation, includes, set_aside. Peaks and bandwidths come from the catalogue. Printed with each
fit: rows, and the error in per cent of rows that the fit has not seen. Of GEMM a tenth of the curves
(one n, k and all its m) is left out in turn, of attention one row. The loss is soft-L1 on log time
or share, which a few noisy rows do not move.
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


ATTENTION = {  # implementation in the table: kernel in the catalogue
    "FlashAttention-1": "flash-1",
    "FlashAttention-2": "flash-2",
    "FlashAttention-3": "flash-3",
    "cuDNN": "cudnn",
    "Triton": "triton",
}
BACKWARD_RATIO = 0.92
BACKWARD_WORK = 2.5  # times forward: five products of the scores' size instead of two


@dataclass(frozen=True)
class Shares:
    """Shares of dense peak that one attention kernel reaches on one GPU."""

    gpu: str
    kernel: str
    both_passes: bool
    seq: np.ndarray
    head_dim: np.ndarray
    causal: np.ndarray
    share: np.ndarray


def attention_tables(path, catalogue):
    groups = {}
    with open(path, newline="") as file:
        for row in csv.DictReader(file):
            kernel = ATTENTION.get(row["implementation"])
            if kernel is None or row["set_aside"] or not row["tflops"]:
                continue
            if row["kernel"] not in ("flash_fwd", "flash_fwd_bwd"):
                continue
            key = (row["gpu"], kernel, row["kernel"] == "flash_fwd_bwd")
            columns = ("k_or_seq", "head_dim", "causal", "tflops")
            groups.setdefault(key, []).append([float(row[c]) for c in columns])
    for (gpu, kernel, both_passes), rows in sorted(groups.items()):
        entry = json.loads((catalogue / f"{gpu}.json").read_text())
        seq, head_dim, causal, tflops = np.array(rows).T
        share = tflops * 1e12 / si(entry["dense_peak"]["bf16"])
        yield Shares(gpu, kernel, both_passes, seq, head_dim, causal, share)


def attention_share(parameters, table, rows):
    """Parameters are log E for each head size in rising order, log half_length, penalty."""
    sizes = np.unique(table.head_dim)
    endless = np.exp(parameters[np.searchsorted(sizes, table.head_dim[rows])])
    half_length = np.exp(parameters[-2]) * (1.0 + table.causal[rows] * parameters[-1])
    return endless / (1.0 + half_length / table.seq[rows])


def fit_attention(table, rows):
    def residual(parameters):
        return np.log(attention_share(parameters, table, rows) / table.share[rows])

    sizes = len(np.unique(table.head_dim))
    start = [np.log(0.5)] * sizes + [np.log(100.0), 2.0]
    low = [np.log(0.01)] * sizes + [np.log(1.0), 0.0]
    high = [0.0] * sizes + [np.log(5000.0), 20.0]
    found = least_squares(residual, start, bounds=(low, high), loss="soft_l1", f_scale=SOFT_L1_SCALE)
    return found.x


def report_attention(table):
    every = np.ones(len(table.seq), dtype=bool)
    parameters = fit_attention(table, every)
    error = np.empty(len(table.seq))
    for row in range(len(table.seq)):
        out = np.zeros(len(table.seq), dtype=bool)
        out[row] = True
        unseen = attention_share(fit_attention(table, ~out), table, out)
        error[out] = 100.0 * np.abs(unseen / table.share[out] - 1.0)
    both = (1.0 + BACKWARD_WORK / BACKWARD_RATIO) / (1.0 + BACKWARD_WORK)
    split = both if table.both_passes else 1.0
    endless = dict(zip(np.unique(table.head_dim), split * np.exp(parameters[:-2])))
    return {
        "gpu": table.gpu,
        "kernel": table.kernel,
        "passes": "both" if table.both_passes else "forward",
        "rows": len(table.seq),
        "share_64": round(float(endless[64.0]), 3),
        "share_128": round(float(endless[128.0]), 3),
        "half_length": round(float(np.exp(parameters[-2]))),
        "causal_penalty": round(float(parameters[-1]), 1),
        "median_error_pct": round(float(np.median(error)), 1),
        "p90_error_pct": round(float(np.percentile(error, 90)), 1),
    }


def print_table(fits):
    if not fits:
        return
    lines = [list(fits[0])] + [[str(value) for value in one.values()] for one in fits]
    widths = [max(map(len, column)) for column in zip(*lines)]
    for line in lines:
        print("  ".join(cell.rjust(width) for cell, width in zip(line, widths)))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("file", help="CSV of measured kernels")
    home = pathlib.Path(__file__).resolve().parent.parent
    parser.add_argument("--catalogue", type=pathlib.Path, default=home / "hardware/catalogue/gpus")
    parser.add_argument("--json", action="store_true", help="one JSON document on stdout")
    arguments = parser.parse_args()
    gemm = [report(table) for table in tables(arguments.file, arguments.catalogue)]
    attention = [
        report_attention(table) for table in attention_tables(arguments.file, arguments.catalogue)
    ]
    if not gemm and not attention:
        sys.exit(f"{arguments.file}: no rows of trtllm-linear GEMMs or of attention kernels")
    if arguments.json:
        print(json.dumps({"gemm": gemm, "attention": attention}, indent=1))
        return
    print_table(gemm)
    print_table(attention)


if __name__ == "__main__":
    main()
