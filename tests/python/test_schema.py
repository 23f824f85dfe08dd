"""`orrery schema`: what is read and printed is held to it, and a wrong document is refused."""

from __future__ import annotations

import copy
import json
import re
import subprocess
from pathlib import Path

import orrery as orr
import pytest
from executing import COMMAND, SECONDS

jsonschema = pytest.importorskip("jsonschema")
pytestmark = pytest.mark.skipif(COMMAND is None, reason="there is no orrery")

ROOT = Path(__file__).resolve().parents[2]
CATALOGUE = ROOT / "hardware" / "catalogue"
LOGS = ROOT / "tests/fuzz/corpus/log"
FILES = {
    "scenario": [*ROOT.glob("scenarios/*.json"), *ROOT.glob("scenarios/local/*.json")],
    "model": [*ROOT.glob("models/catalogue/*.json")],
    "software": [*ROOT.glob("models/software/*.json")],
    "gpu": [*CATALOGUE.glob("gpus/*.json")],
    "node": [*CATALOGUE.glob("nodes/*.json")],
    "cluster": [*CATALOGUE.glob("clusters/*.json")],
    "site": [*CATALOGUE.glob("sites/*.json")],
    "claims": [ROOT / "scenarios/claims/articles.json"],
}


def ask(*arguments: str, cwd: Path | None = None) -> str:
    """What the command prints, whatever its answer is."""
    ran = subprocess.run(
        [COMMAND, *arguments], capture_output=True, text=True, timeout=SECONDS, check=False, cwd=cwd
    )
    assert ran.returncode in (0, 1, 2), ran.stderr
    return ran.stdout


@pytest.fixture(scope="module")
def schemas() -> dict[str, dict]:
    names = [each["name"] for each in json.loads(ask("schema", "--json"))["schemas"]]
    return {name: json.loads(ask("schema", name)) for name in names}


def closed(schema: dict) -> dict:
    """The schema with no member but those that it names: an answer has no undocumented one."""
    schema = copy.deepcopy(schema)
    parts = [schema]
    while parts:
        part = parts.pop()
        if isinstance(part, dict):
            if "properties" in part and isinstance(part["properties"], dict):
                part.setdefault("additionalProperties", False)
            parts += part.values()
        elif isinstance(part, list):
            parts += part
    return schema


def mistakes(schema: dict, document) -> list[str]:
    validator = jsonschema.Draft202012Validator(schema)
    found = []
    for error in validator.iter_errors(document):
        best = jsonschema.exceptions.best_match([error])
        found.append(f"/{'/'.join(str(step) for step in best.absolute_path)}: {best.message[:200]}")
    return found


def test_every_schema_is_one(schemas):
    assert {"scenario", "model", "plan", "simulate", "plan_result", "buy", "train"} <= set(schemas)
    for name, schema in schemas.items():
        jsonschema.Draft202012Validator.check_schema(schema)
        assert schema["$schema"] == "https://json-schema.org/draft/2020-12/schema"
        assert schema["$id"] == f"urn:orrery:{name}"


def test_the_list_has_a_line_for_each(schemas):
    text = ask("schema")
    assert all(re.search(rf"^  {name} ", text, re.MULTILINE) for name in schemas)


@pytest.mark.parametrize("kind", FILES)
def test_what_is_shipped_is_as_its_schema_says(schemas, kind):
    assert FILES[kind]
    for file in FILES[kind]:
        assert mistakes(schemas[kind], json.loads(file.read_text())) == [], file


def test_the_catalogues_fabrics_are_as_their_schema_says(schemas):
    for name, fabric in json.loads((CATALOGUE / "fabrics.json").read_text()).items():
        if name not in ("notes", "sources"):
            assert mistakes(schemas["fabric"], fabric) == [], name


def test_an_expanded_scenario_is_as_its_schema_says(schemas):
    for name in ("llama3-70b-64-h100", "gpt-1t-512-a100", "gpt-tp2-dp2"):
        expanded = json.loads(ask("show", "scenario", name))
        assert mistakes(schemas["scenario"], expanded) == [], name


WRONG = {
    "a typo": ("scenario", {"model": "llama3-8b", "clutser": "dgx-h100"}),
    "a field that a plan has not": ("scenario", {"plan": {"tp": 8}}),
    "a degree of 0": ("plan", {"tensor": 0}),
    "a word that is none": ("plan", {"recompute": "some"}),
    "a rate without its unit": ("fabric", {"kind": "fat_tree", "bandwidth": "400"}),
    "a number for a rate": ("node", {"gpu": "h100", "gpus": 8, "nic_bandwidth": 50}),
    "no GPU": ("node", {"gpus": 8}),
    "a model without layers": ("model", {"format": "orrery-model", "hidden": 64, "heads": 4}),
    "a number as model_type": ("model", {"model_type": 3}),
    "a claim without a value": ("claims", [{"quantity": "gpus"}]),
    "an unknown quantity": ("claims", {"claims": [{"quantity": "beauty", "value": 1}]}),
    "a time without its unit": ("run", {"restart": {"detect": 120}}),
    "a share above 1": ("run", {"failures": {"soft": 1.5}}),
    "a derate of a word": (
        "software",
        {"name": "mine", "kernels": {"gemm_derate": {"default": "1"}}},
    ),
    "a step that is a word": ("error", {"error": {"file": 3}}),
}


@pytest.mark.parametrize("what", WRONG)
def test_a_wrong_document_is_refused(schemas, what):
    kind, document = WRONG[what]
    assert mistakes(schemas[kind], document) != []


def test_every_unit_that_is_read_is_accepted(schemas):
    for text in ("400 Gb/s", "50 GB/s", "50GB/s", "100 Gbps", "12.5 GiB/s"):
        assert mistakes(schemas["fabric"], {"kind": "fat_tree", "bandwidth": text}) == []
    for text in ("3 min", "2h", "0.5 s", "90 d"):
        assert mistakes(schemas["run"], {"checkpoint": {"every": text}}) == []
    assert mistakes(schemas["run"], {"price": "$2.10/h"}) == []
    assert mistakes(schemas["run"], {"price": "2.10/h"}) != []
    assert mistakes(schemas["run"], {"own": {"capex": "$31,000"}}) != []
    assert mistakes(schemas["run"], {"own": {"capex": "$31k"}}) == []


LISTS = ("gpus", "nodes", "clusters", "sites", "models", "software", "schedules", "collectives")
LISTS += ("data-formats", "plan-fields", "scenario")


@pytest.fixture(scope="module")
def answers(tmp_path_factory) -> dict[str, list]:
    """Real answers of every command that has a schema."""
    folder = tmp_path_factory.mktemp("answers")

    def of(*arguments: str):
        return json.loads(ask(*arguments, "--json", cwd=folder))

    small, local = "llama3-8b-8-h100", "gpt-tp2-dp2"
    rows = (ROOT / "scenarios/validation/runs.csv").read_text().splitlines(keepends=True)
    (folder / "runs.csv").write_text("".join(rows[:12]))
    (folder / "own.csv").write_text("".join(rows[:4]))
    kernels = (ROOT / "hardware/measured/kernels.csv").read_text().splitlines(keepends=True)
    (folder / "kernels.csv").write_text("".join(kernels[:60]))
    ask("simulate", local, "--trace", "predicted.json", cwd=folder)
    executed = of("execute", local, "--steps", "2", "--trace", "measured.json")
    ask("execute", "gpt-1rank", "--steps", "2", "--checkpoint", "saved", cwd=folder)
    for shard in "12":
        varied = ["--vary", "/plan/micro_batch=1,2", "--shard", f"{shard}/2"]
        ask("sweep", small, *varied, "--store", f"shard-{shard}.jsonl", cwd=folder)
    ask("export", "llama3-70b-64-h100", "--to", "megatron", "--out", "launch", cwd=folder)
    line = " iteration {}/ 9 | elapsed time per iteration (ms): 1200{}.0 |\n"
    log, times = "train.log", "times.csv"
    (folder / log).write_text("".join(line.format(i, i) for i in range(1, 9)))
    ranks = [f"{step},{rank},{13 if rank == 2 else 10}\n" for step in range(3) for rank in range(4)]
    (folder / times).write_text("step,rank,compute_ms\n" + "".join(ranks))
    # Of one rank, terabytes: no machine has them.
    alone = "tensor=1,pipeline=1,zero=0,micro_batch=1,global_batch=1,seq_len=2048"
    searched = ["--model", "llama3-8b", "--global-batch", "64", "--seq-len", "8192", "--top", "3"]
    return {
        "simulate": [
            of("simulate", small, "--timeline", "--timing", "--verify", "--measured", "1.2s"),
            of("simulate", small, "--tokens", "1T", "--network", "events"),
            of("simulate", small, "--plan", "micro_batch=16"),
            of("simulate", small, "--set", "/network/phases=2", "--network", "events"),
        ],
        "what_if": [of("simulate", small, "--set", "/plan/zero=0,1")],
        "plan_result": [
            of(
                "plan", "--cluster", "dgx-h100 x 1", *searched, "--export", "megatron", "--out", "l"
            ),
            of("plan", "--cluster", '{"node": "g6", "nodes": 1}', *searched),
        ],
        "buy": [of("buy", "--model", "llama3-8b", "--tokens", "10B", "--nodes", "p5,hgx-h100")],
        "train": [of("train", small, "--tokens", "1T", "--samples", "40", "--deadline", "90d")],
        "train_loop": [of("train", "molecular-dynamics-4-64-a100", "--deadline", "90d")],
        "check": [of("check", str(ROOT / "scenarios/claims/articles.json"))],
        "collective": [
            of("collective", "--cluster", "dgx-h100 x 2", "--op", "all_reduce", "--sizes", "1MiB")
        ],
        "validate": [of("validate", "runs.csv")],
        "compare": [of("compare", "predicted.json", "measured.json")],
        "sweep": [
            of("sweep", small, "--vary", "/plan/micro_batch=1,2", "--store", "f.jsonl"),
        ],
        "compare_run": [of("compare", small, log, "--fit", "fitted")],
        "diagnose": [of("diagnose", times)],
        "scale": [of("scale", small, "--gpus", "8:16:x2")],
        "import": [of("import", "launch/megatron.sh")],
        "export": [of("export", small, "--to", "megatron,slurm")],
        "execute": [executed],
        "checkpoints": [of("checkpoint", "verify", "saved")],
        "merge": [of("merge", "shard-1.jsonl", "shard-2.jsonl", "--store", "merged.jsonl")],
        "fit_curves": [of("fit", "curves", "--from", "kernels.csv")],
        "fit_range": [of("fit", "curves", "--from", "kernels.csv", "--leave-out", "range")],
        "fit_software": [of("fit", "software", "--from", "own.csv")],
        "contention": [of("contention", small)],
        "calibrate": [of("calibrate", "--import", str(LOGS / "nccl_tests.txt"))],
        "does_not_fit": [of("execute", "--model", "llama3.1-405b", "--plan", alone)],
        "show": [of("show", kind) for kind in LISTS],
        "schemas": [of("schema")],
        "error": [of("simulate", "no-such-scenario")],
    }


def test_what_is_printed_is_as_its_schema_says(schemas, answers):
    for kind, documents in answers.items():
        for number, document in enumerate(documents):
            found = mistakes(closed(schemas[kind]), document)
            assert found == [], (
                f"{kind} {number}: a new member needs a row in scenarios/schema/answers.csv"
            )


def test_every_document_that_is_printed_has_been_held_to_its_schema(schemas, answers):
    listed = json.loads(ask("schema", "--json"))["schemas"]
    printed = {each["name"] for each in listed if each["kind"] == "answer"}
    assert printed == set(answers)


def test_a_document_names_itself(answers):
    document = answers["simulate"][3]
    assert document["orrery"]["version"] == orr.__version__
    assert re.fullmatch("[0-9a-f]{16}", document["orrery"]["catalogue"])
    assert document["orrery"]["commit"] is None or len(document["orrery"]["commit"]) == 40
    assert document["command"] == "simulate"
    assert document["inputs"] == {"scenario": "llama3-8b-8-h100", "network": "events"}
    assert document["changes"] == [{"pointer": "/network/phases", "value": "2"}]
    assert answers["simulate"][0]["inputs"]["timeline"] is True
    assert answers["plan_result"][0]["command"] == "plan"
    assert answers["buy"][0]["inputs"]["nodes"] == ["p5", "hgx-h100"]
    assert answers["fit_curves"][0]["command"] == "fit curves"
    assert answers["diagnose"][0]["inputs"] == {"logs": "times.csv"}
    for kind, documents in answers.items():
        for each in documents:
            assert kind == "error" or list(each)[:4] == ["orrery", "command", "inputs", "changes"]


def test_an_answer_without_a_member_is_refused(schemas, answers):
    for kind, documents in answers.items():
        for member in schemas[kind].get("required", []):
            less = {key: value for key, value in documents[0].items() if key != member}
            assert mistakes(schemas[kind], less) != [], f"{kind} without {member}"


# ---- The schemas of inputs say what their readers read.

# Members that are resolved before a reader sees them, or that one of two readers of an object has.
RESOLVED = {"$schema", "like", "aliases", "nic", "fabric", "price_per_gpu_hour", "parent", "eras"}
ONE_OF_TWO = {"at", "rate", "from", "to", "distribution", "deviation"}
# Tables of the catalogue that are no document of a user, and readers of other files.
OTHER_FILES = {
    "hardware/gpu/generation.cpp",
    "hardware/gpu/gpu_power.cpp",
    "hardware/prices/offer.cpp",
    "hardware/gpu/power_rule.cpp",
    "models/software/recipes.cpp",
}
READERS = [
    *ROOT.glob("hardware/**/*.cpp"),
    *ROOT.glob("models/software/*.cpp"),
    ROOT / "models/model/import/orrery_model.cpp",
    ROOT / "scenarios/whole_run/run_inputs.cpp",
    ROOT / "scenarios/scenario/network_request.cpp",
    ROOT / "scenarios/scenario/network_jobs.cpp",
    ROOT / "scenarios/scenario/scenario.cpp",
    ROOT / "scenarios/scenario/data_section.cpp",
    ROOT / "scenarios/claims/claims.cpp",
]


def objects_in(schema) -> list[set[str]]:
    found, parts = [], [schema]
    while parts:
        part = parts.pop()
        if isinstance(part, dict):
            if isinstance(part.get("properties"), dict):
                found.append(set(part["properties"]))
            parts += part.values()
        elif isinstance(part, list):
            parts += part
    return found


def test_every_key_that_a_reader_accepts_has_a_row(schemas):
    objects = [
        each for name in FILES | {"run": 0, "fabric": 0} for each in objects_in(schemas[name])
    ]
    lists = 0
    for file in READERS:
        name = str(file.relative_to(ROOT))
        if name in OTHER_FILES:
            continue
        text = file.read_text()
        for match in re.finditer(r"only\(\s*\{([^}]*)\}", text):
            keys = set(re.findall(r'"([^"]+)"', match.group(1)))
            lists += 1
            line = text[: match.start()].count("\n") + 1
            assert any(keys <= each and each - keys <= RESOLVED | ONE_OF_TWO for each in objects), (
                f"{name}:{line}: no rows of scenarios/schema/inputs.csv have the keys {sorted(keys)}"
            )
    assert lists > 40


def test_the_schema_of_a_plan_has_the_fields_that_are_read(schemas):
    shown = json.loads(ask("show", "plan-fields", "--json"))["plan_fields"]
    assert set(schemas["plan"]["properties"]) - {"$schema"} == {each["field"] for each in shown}
    assert "8" not in schemas["plan"]["properties"]["tensor"]  # a number has a number's schema


# ---- A file may name its schema.


@pytest.mark.parametrize(
    ("kind", "flags"),
    [
        ("scenario", ["simulate", "FILE"]),
        ("model", ["simulate", "--model", "FILE", "--cluster", "dgx-h100 x 1", "--plan", "zero=1"]),
        ("cluster", ["simulate", "--model", "gpt2", "--cluster", "FILE", "--plan", "zero=1"]),
        ("software", ["simulate", "llama3-8b-8-h100", "--software", "FILE"]),
        ("plan", ["simulate", "--model", "gpt2", "--cluster", "dgx-h100", "--plan", "FILE"]),
        ("claims", ["check", "FILE"]),
    ],
)
def test_a_file_may_name_its_schema(tmp_path, kind, flags):
    document = {
        "scenario": json.loads((ROOT / "scenarios/llama3-8b-8-h100.json").read_text()),
        "model": json.loads((ROOT / "models/catalogue/gpt2.json").read_text()),
        "cluster": {"node": "dgx-h100", "nodes": 1},
        "software": {"name": "mine", "parent": "nemo", "source": "made for this test"},
        "plan": {"zero": 1, "global_batch": 64, "seq_len": 1024},
        "claims": {"claims": [{"quantity": "gpus", "value": 8, "subject": {"data": 8}}]},
    }[kind]
    file = tmp_path / f"{kind}.json"
    arguments = [str(file) if each == "FILE" else each for each in flags]
    file.write_text(json.dumps(document))
    plain = json.loads(ask(*arguments, "--json"))
    assert "error" not in plain
    file.write_text(json.dumps({"$schema": f"{kind}.schema.json", **document}))
    assert json.loads(ask(*arguments, "--json")) == plain
    file.write_text(json.dumps({"$schema": 3, **document}))
    refused = json.loads(ask(*arguments, "--json"))
    assert kind == "model" or refused["error"]["pointer"] == "/$schema"


def test_python_gives_the_same_schema(schemas):
    assert orr.schema("scenario") == schemas["scenario"]
    with pytest.raises(
        orr.InputError, match=r"^unknown schema 'scenaro' \(did you mean 'scenario'\?\)"
    ):
        orr.schema("scenaro")
