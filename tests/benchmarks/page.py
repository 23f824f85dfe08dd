"""Runs every benchmark that states a limit and writes a page of all of them.

    python3 tests/benchmarks/page.py build/tests/benchmarks/scenarios_benchmark figures.html

Limits hold where the heap (exponential, 10,000 pending) takes 67 ns per event; on the page they are
scaled by what it takes here, measured in the same process right before each case. Each case runs
three times and its best counts, as the heap's does, both in time of the processor, so that others
on the machine cost little. Only parts of a prediction, traffic and collectives go by the wall's
clock, and may look slow where the machine is shared.
"""

import html
import json
import subprocess
import sys

HEAP = "four_ary_heap/exponential/10000/real_time"
HEAP_LIMITS_NS = 67.0
MEMORY_LIMITS_MIB = {"step_1t/contiguous_nodes": 120.0}

STYLE = """
body { font: 15px/1.45 sans-serif; margin: 2em auto; max-width: 72em; color: #222 }
table { border-collapse: collapse; width: 100% }
th, td { padding: .3em .6em; border-bottom: 1px solid #ddd; text-align: right }
th { vertical-align: bottom } td { white-space: nowrap }
th:first-child, td:first-child { text-align: left }
.bar { width: 6em; background: #eee; height: .8em; position: relative }
.bar i { position: absolute; left: 0; top: 0; bottom: 0; background: #4a7fb5 }
.over .bar i { background: #c0392b }
.over td { color: #c0392b }
"""


def run(program, *flags):
    command = [program, *flags]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def measured(program, name):
    """The best of a case and of the heap next to it."""
    answer = json.loads(
        run(
            program,
            f"--benchmark_filter=^({HEAP}|{name})$",
            "--benchmark_repetitions=3",
            "--benchmark_format=json",
        )
    )
    runs = [each for each in answer["benchmarks"] if each["run_type"] == "iteration"]
    heap = min(
        each["per_event"] * each["cpu_time"] / each["real_time"]
        for each in runs
        if each["run_name"] == HEAP
    )
    own = [each for each in runs if each["run_name"] != HEAP]
    broken = [each["error_message"] for each in own if each.get("error_occurred")]
    if broken:
        sys.exit(f"{name}: {broken[0]}")
    if not own or "limit_ms" not in own[0]:
        return None
    clock = "real_time" if name.endswith("/manual_time") else "cpu_time"
    best = min(own, key=lambda each: each[clock])
    return {
        **best,
        "name": name.removesuffix("/manual_time"),
        "took": best[clock],
        "heap": heap * 1e9,
    }


def milliseconds(value):
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def row(case):
    limit = case["limit_ms"] * case["heap"] / HEAP_LIMITS_NS
    share = case["took"] / limit
    memory = case.get("peak_mib")
    most = MEMORY_LIMITS_MIB.get(case["name"])
    over = share > 1 or (most is not None and memory > most)
    simulated = f"{case['found_ms']:.9f} ms" if "found_ms" in case else ""
    if "exact_ms" in case:
        simulated += " = closed form"  # within 1e-9: the benchmark fails elsewhere
    cells = [
        html.escape(case["name"]),
        milliseconds(case["limit_ms"]),
        f"{case['heap']:.0f}",
        milliseconds(limit),
        milliseconds(case["took"]),
        f'<div class="bar"><i style="width: {100 * min(share, 1):.0f}%"></i></div>',
        "" if memory is None else f"{memory:.0f}" + (f" of {most:.0f}" if most else ""),
        simulated,
    ]
    inside = "".join(f"<td>{each}</td>" for each in cells)
    return f'<tr class="{"over" if over else ""}">{inside}</tr>'


def page(cases):
    heads = [
        "case",
        "limit at 67 ns (ms)",
        "heap here (ns)",
        "limit here (ms)",
        "took (ms)",
        "of the limit",
        "peak (MiB)",
        "simulated",
    ]
    head = "".join(f"<th>{each}</th>" for each in heads)
    body = "\n".join(row(case) for case in cases)
    return f"""<!doctype html>
<meta charset="utf-8">
<title>How long answers take</title>
<style>{STYLE}</style>
<h1>How long answers take</h1>
<p>One thread. A limit holds where a 4-ary heap takes 67 ns per event (16-byte keys, 10,000
pending, exponential increments) and grows with what it takes here, next to each case. The best of
three runs each, in time of the processor; only parts of a prediction (lower_and_simulate), traffic
and collectives go by the clock on the wall, so others on the machine count. The peak is of a process
of its own with all that it embeds. Red: over a limit.</p>
<table><tr>{head}</tr>
{body}
</table>
"""


def main(program, out):
    cases = []
    for name in run(program, "--benchmark_list_tests").split():
        if name == HEAP or name.startswith(("search", "enumerate")):
            continue
        print(name, flush=True)
        case = measured(program, name)
        if case:
            cases.append(case)
    with open(out, "w", encoding="utf-8") as file:
        file.write(page(cases))
    print(out)


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    main(*sys.argv[1:])
