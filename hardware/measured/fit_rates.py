"""Fits hardware/measured/rates.csv to hardware/measured/layer_kernels.csv, and says how far each fit
is from rows that it has not seen. Run from the root: python3 hardware/measured/fit_rates.py

Each row is left out in turn; the errors are those of the row that is left out. A fit minimises the
sum of squared relative errors over coefficients that are not negative. Rows of a part and a GPU with
fewer than five measurements have the start and the step of the GPU that lends them, and a rate of
their own.

With --sources it writes nothing, and says how far each source's rows are from a fit to the other
sources: to those of its GPU, or else of the GPUs whose curves its generation borrows, or else of any.
"""

import csv
import itertools
import json
import sys
from pathlib import Path

FOLDER = Path(__file__).parent
PEAKS = FOLDER.parent / "catalogue" / "gpus"


def peak(gpu, dtype):
    text = json.loads((PEAKS / f"{gpu}.json").read_text())["dense_peak"][dtype]
    return float(text.split()[0]) * {"TFLOP/s": 1e12, "PFLOP/s": 1e15}[text.split()[1]]


def bandwidth(gpu):
    text = json.loads((PEAKS / f"{gpu}.json").read_text())["memory_bandwidth"]
    return float(text.split()[0]) * {"TB/s": 1e12, "GB/s": 1e9}[text.split()[1]]


def solve(matrix, right):
    """Solves a small linear system by Gauss's elimination; None if it is singular."""
    n = len(right)
    rows = [list(row) + [value] for row, value in zip(matrix, right)]
    for i in range(n):
        pivot = max(range(i, n), key=lambda r: abs(rows[r][i]))
        if abs(rows[pivot][i]) < 1e-300:
            return None
        rows[i], rows[pivot] = rows[pivot], rows[i]
        for r in range(n):
            if r != i:
                factor = rows[r][i] / rows[i][i]
                rows[r] = [a - factor * b for a, b in zip(rows[r], rows[i])]
    return [rows[i][n] / rows[i][i] for i in range(n)]


def fit(terms, times):
    """Non-negative coefficients of `terms` with the least sum of squared relative errors."""
    width = len(terms[0])
    scaled = [[a / t for a in row] for row, t in zip(terms, times)]
    best, least = None, None
    for size in range(1, width + 1):
        for chosen in itertools.combinations(range(width), size):
            normal = [[sum(r[i] * r[j] for r in scaled) for j in chosen] for i in chosen]
            found = solve(normal, [sum(r[i] for r in scaled) for i in chosen])
            if found is None or min(found) < 0:
                continue
            full = [0.0] * width
            for i, value in zip(chosen, found):
                full[i] = value
            loss = sum((sum(c * a for c, a in zip(full, r)) - 1) ** 2 for r in scaled)
            if least is None or loss < least:
                best, least = full, loss
    return best


def quantile(values, share):
    values = sorted(values)
    at = share * (len(values) - 1)
    low = int(at)
    high = min(low + 1, len(values) - 1)
    return values[low] + (values[high] - values[low]) * (at - low)


def left_out(terms, times):
    """Errors in per cent of each row, predicted without it: median and 90th percentile."""
    errors = []
    for i in range(len(times)):
        if len(times) == 1:
            return None
        found = fit(terms[:i] + terms[i + 1:], times[:i] + times[i + 1:])
        predicted = sum(c * a for c, a in zip(found, terms[i]))
        errors.append(abs(predicted / times[i] - 1) * 100)
    return quantile(errors, 0.5), quantile(errors, 0.9)


def number(row, key):
    return float(row[key])


def delta_terms(row):
    """One call, chunks of 64 tokens of a sequence, FLOPs: models/model/layer.hpp, scan_flops."""
    tokens = number(row, "batch") * number(row, "seq")
    k, v = number(row, "key_dim"), number(row, "value_dim")
    flops = tokens * number(row, "heads") * (64 * (6 * k + 4 * v) + 6 * k * v)
    return [1.0, number(row, "seq") / 64, flops]


def mamba_terms(row):
    """FLOPs within a chunk of Q tokens and with the states: Q G N, Q d / 2 twice, 2 N d."""
    d = number(row, "heads") * number(row, "key_dim")
    chunk, state = number(row, "chunk"), number(row, "state")
    return [number(row, "batch") * number(row, "seq") * (chunk * d + 2 * state * d)]


def conv_terms(row):
    return [1.0, 4.0 * number(row, "batch") * number(row, "seq") * number(row, "channels")]


def score_terms(row):
    """Causal: of the keys, those before each query."""
    queries, keys = number(row, "seq"), number(row, "keys")
    attended = keys - queries / 2
    return [1.0, 2 * number(row, "heads") * number(row, "key_dim") * queries * attended]


def top_terms(row):
    queries, keys = number(row, "seq"), number(row, "keys")
    return [queries, queries * keys]


def core_terms(row):
    """Every query attends to `top` keys, of which the first have too few."""
    columns = number(row, "heads") * (number(row, "key_dim") + number(row, "value_dim"))
    return [1.0, 2 * number(row, "seq") * number(row, "top") * columns]


TILE = 128
# What a delta rule reaches of the peak of a GPU whose tensor cores are slow (H20): the most that any
# GPU is taken to reach which has no row of its own.
MOST_OF_PEAK = 0.33


def window_terms(row, curve, kind):
    """Time by the GPU's attention curve: of whole tiles at a sequence of window + tile, or in 8 bits
    backward, which skips none, of the whole causal triangle."""
    whole = kind == "fp8" and row["pass"] == "backward"
    reach = number(row, "seq") if whole else number(row, "window") + TILE
    visited = reach / 2 if whole else reach
    d, v = number(row, "key_dim"), number(row, "value_dim")
    share = curve["share_64"] if d <= 64 else curve["share_128"]
    share /= 1 + curve["half_length"] * (1 + curve["causal_penalty"]) / reach
    flops = 2 * number(row, "batch") * number(row, "seq") * number(row, "heads") * (d + v) * visited
    if row["pass"] == "backward":
        flops *= 2.5
        share *= curve["backward_ratio"]
    return [1e6 * flops / (share * peak(row["gpu"], kind))]


TERMS = {
    "delta": (("FLA chunk_gated_delta_rule", "chunk_gated_delta_rule", "chunk_gdn (Triton)"), delta_terms),
    "kimi": (("FLA chunk_kda", "chunk_kda", "chunk_kda (Triton)"), delta_terms),
    "mamba2": (("TileLang mamba_chunk_scan",), mamba_terms),
    "conv1d": (("causal_conv1d_fn",), conv_terms),
    "index_scores": (("deep_gemm.fp8_mqa_logits",), score_terms),
    "top_k": (("fast_topk_transform_fused",), top_terms),
    "sparse_core": (("flash_mla_sparse_fwd",), core_terms),
}


def fallbacks(gpu):
    """The GPU itself, and those whose curves its generation borrows."""
    own = json.loads((PEAKS / f"{gpu}.json").read_text())["generation"]
    generation = json.loads((PEAKS.parent / "generations.json").read_text()).get(own, {})
    return [gpu] + generation.get("curves_from", [])


def other_sources(rows, gpu):
    """The rows of the nearest GPU that has five, or all rows."""
    for name in fallbacks(gpu):
        near = [row for row in rows if row["gpu"] == name]
        if len(near) >= 5:
            return near
    return rows


def by_source():
    rows = list(csv.DictReader((FOLDER / "layer_kernels.csv").open()))
    for part, (kernels, terms_of) in TERMS.items():
        for way in ("forward", "backward"):
            own = [r for r in rows
                   if r["part"] == part and r["pass"] == way and r["kernel"] in kernels]
            for source in sorted({(r["source"], r["gpu"]) for r in own}):
                left = [r for r in own if (r["source"], r["gpu"]) == source]
                rest = other_sources([r for r in own if r["source"] != source[0]], source[1])
                said = "no other source"
                if len(rest) >= 3:
                    found = fit([terms_of(r) for r in rest], [number(r, "time_us") for r in rest])
                    off = [sum(c * a for c, a in zip(found, terms_of(r))) / number(r, "time_us") - 1
                           for r in left]
                    said = (f"{100 * quantile([abs(e) for e in off], 0.5):6.1f} %  "
                            f"{100 * quantile([abs(e) for e in off], 0.9):6.1f} %  from "
                            + " ".join(sorted({r['gpu'] for r in rest})))
                print(f"{part:>12} {way:>8} {source[1]:>14} {len(left):4d}  {said}  ({source[0]})")


def main():
    if "--sources" in sys.argv:
        return by_source()
    rows = list(csv.DictReader((FOLDER / "layer_kernels.csv").open()))
    made = []

    def add(part, way, where, coefficients, errors, count, source):
        cells = dict.fromkeys(
            ["part", "pass", "where", "start_us", "chunk_us", "tflops", "share_of_peak", "factor",
             "rows", "median_error_pct", "p90_error_pct", "source"], "")
        cells.update({"part": part, "pass": way, "where": where, "rows": count, "source": source})
        cells.update({key: f"{value:.4g}" for key, value in coefficients.items()})
        if errors:
            cells["median_error_pct"] = f"{errors[0]:.1f}"
            cells["p90_error_pct"] = f"{errors[1]:.1f}"
        made.append(cells)

    def chosen(part, kernels, way):
        by_gpu = {}
        for row in rows:
            if row["part"] == part and row["pass"] == way and row["kernel"] in kernels:
                by_gpu.setdefault(row["gpu"], []).append(row)
        return by_gpu

    lent = {}
    for part, kernels in (
            ("delta", ("FLA chunk_gated_delta_rule", "chunk_gated_delta_rule", "chunk_gdn (Triton)")),
            ("kimi", ("FLA chunk_kda", "chunk_kda", "chunk_kda (Triton)"))):
        for way in ("forward", "backward"):
            groups = chosen(part, kernels, way)
            for gpu, own in sorted(groups.items(), key=lambda item: -len(item[1])):
                terms = [delta_terms(row) for row in own]
                times = [number(row, "time_us") for row in own]
                if len(own) >= 5:
                    found = fit(terms, times)
                    errors = left_out(terms, times)
                    lent.setdefault((part, way), found)
                else:
                    base = lent.get((part, way)) or lent[("delta", way)]
                    rest = [t - base[0] - base[1] * a[1] for a, t in zip(terms, times)]
                    rate = [max(r, t * 0.1) / a[2] for r, a, t in zip(rest, terms, times)]
                    found = [base[0], base[1], sum(rate) / len(rate)]
                    errors = None
                    if len(own) > 1:
                        off = []
                        for i, (a, t) in enumerate(zip(terms, times)):
                            other = rate[:i] + rate[i + 1:]
                            guess = base[0] + base[1] * a[1] + sum(other) / len(other) * a[2]
                            off.append(abs(guess / t - 1) * 100)
                        errors = quantile(off, 0.5), quantile(off, 0.9)
                add(part, way, gpu,
                    {"start_us": found[0], "chunk_us": found[1], "tflops": 1e-6 / found[2],
                     "share_of_peak": MOST_OF_PEAK}, errors, len(own), own[0]["source"])

    own = [row for row in rows if row["part"] == "mamba2"]
    terms, times = [mamba_terms(r) for r in own], [number(r, "time_us") for r in own]
    found = fit(terms, times)
    # Triton's kernels: those of the delta rule are no faster on Blackwell than on H200, so no GPU is
    # taken to be faster than the one that was measured, nor to reach more of its peak.
    add("mamba2", "", "",
        {"tflops": 1e-6 / found[0], "share_of_peak": 1e6 / found[0] / peak(own[0]["gpu"], "bf16")},
        left_out(terms, times), len(own), own[0]["source"])

    for gpu, own in sorted(chosen("conv1d", ("causal_conv1d_fn",), "forward").items(),
                           key=lambda item: not item[0].startswith("h100")):
        terms, times = [conv_terms(r) for r in own], [number(r, "time_us") for r in own]
        found = fit(terms, times)
        add("conv1d", "forward", gpu,
            {"start_us": found[0], "share_of_peak": 1e6 / found[1] / bandwidth(gpu)},
            left_out(terms, times), len(own), own[0]["source"])

    for part, terms_of, kind in (("index_scores", score_terms, "fp8"), ("sparse_core", core_terms, "bf16")):
        own = [row for row in rows if row["part"] == part]
        terms, times = [terms_of(r) for r in own], [number(r, "time_us") for r in own]
        found = fit(terms, times)
        add(part, "forward", "", {"start_us": found[0],
                                  "share_of_peak": 1e6 / found[1] / peak(own[0]["gpu"], kind)},
            left_out(terms, times), len(own), own[0]["source"])
    own = [row for row in rows if row["part"] == "top_k"]
    terms, times = [top_terms(r) for r in own], [number(r, "time_us") for r in own]
    found = fit(terms, times)
    add("top_k", "forward", "", {"chunk_us": found[0], "tflops": 1e-6 / found[1]},
        left_out(terms, times), len(own), own[0]["source"] + "; chunk_us for each row, tflops: keys")

    for kind, curve, part in (("bf16", "cudnn", "window"), ("fp8", "cudnn-fp8", "window-fp8")):
        for way in ("forward", "backward"):
            for gpu, all_rows in sorted(chosen("window", ("cuDNN SDPA (cudnn)",), way).items()):
                own = [row for row in all_rows if row["dtype"] == kind]
                curves = json.loads((PEAKS / f"{gpu}.json").read_text())["attention"]
                if curve not in curves or not own:
                    continue
                terms = [window_terms(row, curves[curve], kind) for row in own]
                times = [number(row, "time_us") for row in own]
                add(part, way, gpu, {"factor": fit(terms, times)[0]}, left_out(terms, times),
                    len(own), own[0]["source"])

    kept = [row for row in csv.DictReader((FOLDER / "rates.csv").open())
            if row["part"] in ("convolution", "host_adam", "host_power", "queued_gemm", "deduplicated")]
    with (FOLDER / "rates.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, made[0].keys(), lineterminator="\n")
        writer.writeheader()
        writer.writerows(made + kept)
    for row in made:
        print("  ".join(f"{row[key]:>14}" for key in list(row)[:11]))


if __name__ == "__main__":
    main()
