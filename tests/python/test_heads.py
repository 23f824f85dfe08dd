"""Every document says what it is of: what it was made with, the question, and its arguments."""

from __future__ import annotations

import orrery as orr
import pytest
from conftest import SMALL

HEAD = ["orrery", "command", "inputs", "changes"]
CLAIMS = [{"id": "a", "quantity": "gpus", "value": 8}]
SEARCHED = {"model": "gpt2", "cluster": "dgx-h100", "global_batch": 8, "seq_len": 128}
QUESTIONS = {
    "simulate": lambda: orr.load(SMALL).simulate(),
    "plan": lambda: orr.plan(**SEARCHED, top=1, progress=False),
    "buy": lambda: orr.buy(
        model="gpt2", tokens="1B", nodes=["hgx-h100"], gpus="8", threads=1, progress=False
    ),
    "train": lambda: orr.train(SMALL, tokens="1M", samples=20, progress=False),
    "check": lambda: orr.check(CLAIMS),
    "scale": lambda: orr.scale("llama3-8b-8-h100", gpus=[8, 16], progress=False),
    "contention": lambda: orr.contention("gpt-dp2", progress=False),
    "collective": lambda: orr.collective(cluster="dgx-h100", op="all_reduce", sizes="1MiB"),
}


@pytest.mark.parametrize("command", QUESTIONS)
def test_a_document_names_itself(command):
    answer = QUESTIONS[command]()
    document = answer.json
    assert list(document)[:4] == HEAD
    assert document["orrery"]["version"] == orr.__version__
    assert document["command"] == command
    assert document["inputs"]
    assert document["changes"] == []
    assert not {"progress", "partial"} & set(document["inputs"])


def test_inputs_are_the_arguments_that_were_given():
    document = QUESTIONS["buy"]().json
    assert document["inputs"] == {
        "model": "gpt2",
        "tokens": "1B",
        "nodes": ["hgx-h100"],
        "gpus": "8",
        "threads": 1,
    }
    assert orr.check(CLAIMS).json["inputs"] == {"claims": CLAIMS}
    assert "claims" not in orr.check(iter(CLAIMS)).json["inputs"]  # it can be read but once


def test_changes_of_a_scenario_are_named():
    changed = orr.load("llama3-8b-8-h100").replace({"/plan/micro_batch": 2})
    expected = [{"pointer": "/plan/micro_batch", "value": "2"}]
    for document in (
        changed.simulate().json,
        orr.train(changed, tokens="1B", samples=20, progress=False).json,
        changed.sensitivity(progress=False).json,
    ):
        assert document["changes"] == expected
        assert document["inputs"]["scenario"] == "llama3-8b-8-h100"


def test_heads_do_not_tell_answers_apart():
    one, two = (orr.train(SMALL, tokens="1M", samples=20, threads=n, progress=False) for n in (1, 2))
    assert one == two
    assert one.json["inputs"] != two.json["inputs"]
    assert one["command"] == "train"
