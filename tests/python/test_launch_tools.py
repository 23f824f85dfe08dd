"""Launch files as the tools themselves read them, and traces between Orrery and PyTorch's tools.

A test is skipped where its tool is missing: nightly checks install all of them. Megatron-LM's parser
is in no package (megatron-core has none), so of megatron.sh only the line of torchrun is read here.
"""

from __future__ import annotations

import getpass
import json
import os
import shutil
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest
from executing import COMMAND, SCENARIOS, answer_of, free_port, outcome

pytestmark = pytest.mark.skipif(COMMAND is None, reason="there is no orrery")

NODES, GPUS_OF_NODE = 2, 8
GPUS = NODES * GPUS_OF_NODE
BATCH = 32


def exported(folder: Path, *targets: str, plan: str = "zero=3", nodes: int = NODES,
             model: str = "llama3-8b", batch: int = BATCH) -> Path:  # fmt: skip
    """The folder, with a plan written for each target."""
    asked = [COMMAND, "export", "--model", model, "--cluster", f"dgx-h100 x {nodes}"]
    asked += ["--plan", f"{plan},micro_batch=1,global_batch={batch},seq_len=4096"]
    asked += ["--out", str(folder)]
    for target in targets:
        asked += ["--to", target]
    ran = outcome(asked)
    assert ran.returncode == 0, ran.stderr
    return folder


def with_stand_ins(folder: Path, *names: str) -> dict[str, str]:
    """An environment in which these programs write their arguments, one a line, into NAME.txt."""
    for name in names:
        path = folder / "bin" / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(f'#!/bin/sh\nprintf "%s\\n" "$@" > "{folder}/{name}.txt"\n')
        path.chmod(0o755)
    return {**os.environ, "PATH": f"{folder}/bin:{os.environ['PATH']}"}


def arguments(folder: Path, name: str) -> list[str]:
    return (folder / f"{name}.txt").read_text().splitlines()


def run_script(script: Path, environment: dict[str, str]) -> None:
    ran = outcome(["bash", script.name], cwd=script.parent, env=environment)
    assert ran.returncode == 0, ran.stderr


# ------------------------------------------------------------------------------------ torchrun


def parsed_by_torchrun(line: list[str]):
    from torch.distributed import run

    parsed = run.get_args_parser().parse_args(line)
    config, _, script = run.config_from_args(parsed)
    assert (config.min_nodes, config.max_nodes) == (NODES, NODES)
    assert config.nproc_per_node == GPUS_OF_NODE
    assert config.rdzv_backend == "c10d"
    return parsed, config, script


@pytest.mark.parametrize(
    ("tool", "plan", "starts"),
    [
        ("", "zero=1", ["train.py"]),
        (
            "deepspeed",
            "zero=3",
            ["train.py", "--deepspeed", "--deepspeed_config", "deepspeed.json"],
        ),
        ("torchtitan", "zero=3", ["--job.config_file", "torchtitan.toml"]),
    ],
)
def test_torchrun_parses_its_script(tool, plan, starts, tmp_path):
    pytest.importorskip("torch.distributed.run")
    exported(tmp_path, *filter(None, [tool, "torchrun"]), plan=plan)
    environment = {**with_stand_ins(tmp_path, "torchrun"), "NODE_RANK": "1", "MASTER_ADDR": "head"}
    run_script(tmp_path / "torchrun.sh", environment)
    parsed, config, script = parsed_by_torchrun(arguments(tmp_path, "torchrun"))
    assert parsed.node_rank == 1
    assert config.rdzv_endpoint == "head:29500"
    assert parsed.module == (tool == "torchtitan")
    assert script[-len(starts) :] == starts


def test_torchrun_parses_megatrons_script(tmp_path):
    pytest.importorskip("torch.distributed.run")
    exported(tmp_path, "megatron", plan="tensor=2,sequence=true,pipeline=2,zero=1")
    run_script(tmp_path / "megatron.sh", with_stand_ins(tmp_path, "torchrun"))
    parsed, _, script = parsed_by_torchrun(arguments(tmp_path, "torchrun"))
    assert parsed.training_script == "pretrain_gpt.py"
    assert script[script.index("--tensor-model-parallel-size") + 1] == "2"


@pytest.mark.parametrize("tool", ["torchrun", "accelerate"])
def test_ranks_of_two_nodes_meet(tool, tmp_path):
    """Both nodes are this machine; the script only says who it is."""
    pytest.importorskip("torch.distributed.run")
    launchers = [Path(sys.executable).parent / each for each in ("torchrun", tool)]
    if not all(each.exists() for each in launchers):
        pytest.skip(f"{tool} is not installed")
    exported(tmp_path, *{tool, "torchrun"})
    (tmp_path / "train.py").write_text(
        "import os, sys\nfrom pathlib import Path\n"
        "Path('rank' + os.environ['RANK']).write_text(' '.join([os.environ['WORLD_SIZE'],"
        "os.environ['LOCAL_RANK'], os.environ.get('PARALLELISM_CONFIG_DP_SHARD_SIZE', ''),"
        "*sys.argv[1:]]))\n"
    )
    nodes = []
    port = str(free_port())
    for node in range(NODES):
        environment = {**os.environ, "NODE_RANK": str(node), "MASTER_PORT": port,
                       "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}  # fmt: skip
        nodes.append(
            subprocess.Popen(
                ["bash", "torchrun.sh", "--steps", "3"],
                cwd=tmp_path,
                env=environment,
                text=True,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
            )
        )
        time.sleep(2)  # accelerate's first node insists on a port that nobody listens at
    for each in nodes:
        said = each.communicate(timeout=120)[0]
        assert each.returncode == 0, said
    shards = str(GPUS) if tool == "accelerate" else ""
    for rank in range(GPUS):
        said = (tmp_path / f"rank{rank}").read_text()
        assert said == f"{GPUS} {rank % GPUS_OF_NODE} {shards} --steps 3"


# ---------------------------------------------------------------------------------- accelerate


def read_by_accelerate(file: Path, monkeypatch) -> dict[str, str]:
    """What accelerate launch would put into the environment of the ranks."""
    import accelerate.utils.launch as environments
    from accelerate.commands import launch
    from accelerate.commands.config.config_args import load_config_from_file

    load_config_from_file(str(file))  # refuses a key that it does not know
    parser = launch.launch_command_parser()
    parsed = parser.parse_args(
        ["--config_file", str(file), "--main_process_ip", "head", "--main_process_port",
         str(free_port()), "train.py"]
    )  # fmt: skip
    known = set(vars(parsed))
    parsed, defaults, _ = launch._validate_launch_command(parsed)
    for section in ("fsdp_config", "fp8_config", "parallelism_config"):
        for key in getattr(defaults, section):
            prefix = "" if section == "parallelism_config" else section.removesuffix("config")
            assert key in known or prefix + key in known, f"{section}.{key}: no option reads it"
    monkeypatch.setattr(environments, "is_fp8_available", lambda: True)
    environment = environments.prepare_multi_gpu_env(parsed)
    assert (parsed.nnodes, parsed.nproc_per_node) == (str(NODES), str(GPUS_OF_NODE))
    assert parsed.rdzv_endpoint.startswith("head:")
    return environment


@pytest.mark.parametrize(
    ("target", "plan", "means"),
    [
        ("accelerate", "zero=3", {}),
        ("fsdp", "zero=3", {}),
        ("accelerate", "zero=3,precision=fp16", {"ACCELERATE_MIXED_PRECISION": "fp16"}),
        ("accelerate", "zero=3,precision=fp32", {"ACCELERATE_MIXED_PRECISION": "no"}),
        ("accelerate", "zero=3,recompute=full", {"FSDP_ACTIVATION_CHECKPOINTING": "true"}),
        ("accelerate", "zero=3,reshard=false", {"FSDP_RESHARD_AFTER_FORWARD": "false"}),
        ("fsdp", "zero=3,offload=parameters", {"FSDP_OFFLOAD_PARAMS": "true"}),
        (
            "fsdp",
            "zero=3,data_shard=8",
            {
                "PARALLELISM_CONFIG_DP_SHARD_SIZE": "8",
                "PARALLELISM_CONFIG_DP_REPLICATE_SIZE": "2",
            },
        ),
        (
            "accelerate",
            "zero=3,precision=fp8-current",
            {
                "ACCELERATE_MIXED_PRECISION": "fp8",
                "ACCELERATE_FP8_BACKEND": "AO",
                "ACCELERATE_FP8_ENABLE_FSDP_FLOAT8_ALL_GATHER": "False",
            },
        ),
        (
            "fsdp",
            "zero=3,precision=fp8-current,low_precision_gather=true",
            {
                "ACCELERATE_MIXED_PRECISION": "fp8",
                "ACCELERATE_FP8_ENABLE_FSDP_FLOAT8_ALL_GATHER": "True",
            },
        ),
    ],
)
def test_accelerate_reads_a_sharded_plan(target, plan, means, tmp_path, monkeypatch):
    pytest.importorskip("accelerate.commands.launch")
    file = exported(tmp_path, target, plan=plan) / f"{target}.yaml"
    environment = read_by_accelerate(file, monkeypatch)
    usual = {
        "ACCELERATE_MIXED_PRECISION": "bf16",
        "ACCELERATE_USE_FSDP": "true",
        "FSDP_VERSION": "2",
        "FSDP_RESHARD_AFTER_FORWARD": "true",
        "FSDP_OFFLOAD_PARAMS": "false",
        "FSDP_ACTIVATION_CHECKPOINTING": "false",
        "PARALLELISM_CONFIG_DP_SHARD_SIZE": str(GPUS),
        "PARALLELISM_CONFIG_DP_REPLICATE_SIZE": "1",
        "PARALLELISM_CONFIG_TP_SIZE": "1",
        "PARALLELISM_CONFIG_CP_SIZE": "1",
    }
    expected = {**usual, **means}
    assert {name: environment.get(name) for name in expected} == expected
    # What a rank makes of it.
    from accelerate.parallelism_config import ParallelismConfig
    from accelerate.utils import FullyShardedDataParallelPlugin

    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert FullyShardedDataParallelPlugin().fsdp_version == 2
    assert ParallelismConfig().total_size == GPUS


def test_accelerate_reads_a_plan_without_shards(tmp_path, monkeypatch):
    pytest.importorskip("accelerate.commands.launch")
    file = exported(tmp_path, "accelerate", plan="zero=0") / "accelerate.yaml"
    environment = read_by_accelerate(file, monkeypatch)
    assert environment["ACCELERATE_MIXED_PRECISION"] == "bf16"
    assert "ACCELERATE_USE_FSDP" not in environment


# ----------------------------------------------------------------------------------- DeepSpeed


@pytest.fixture(scope="module")
def deepspeed_config():
    os.environ.update(DS_BUILD_OPS="0", DS_ACCELERATOR="cpu")
    return pytest.importorskip("deepspeed.runtime.config")


@pytest.mark.parametrize(
    ("plan", "means"),
    [
        ("zero=0", {"stage": 0}),
        ("zero=1,overlap=false", {"stage": 1, "overlap_comm": False}),
        ("zero=2,bucket=200MB", {"stage": 2, "reduce_bucket_size": 50_000_000}),  # of fp32
        ("zero=3", {"stage": 3, "overlap_comm": True}),
        # A layer of Llama 3 8B: 4096 (6144 + 4096) of attention, 3 x 4096 x 14336 of its MLP, two
        # norms, and its 32nd of the last norm.
        ("zero=3,prefetch=2", {"prefetch_bucket_size": 2 * (218_103_808 + 2 * 4096 + 128)}),
        ("zero=3,offload=optimizer", {"offload_optimizer": "cpu", "offload_param": None}),
        ("zero=3,offload=parameters", {"offload_optimizer": "cpu", "offload_param": "cpu"}),
        ("zero=2,precision=fp16", {"stage": 2}),
        ("zero=3,precision=fp32", {"stage": 3}),
    ],
)
def test_deepspeed_reads_a_plan(plan, means, tmp_path, monkeypatch, deepspeed_config):
    file = exported(tmp_path, "deepspeed", plan=plan) / "deepspeed.json"
    monkeypatch.setattr(deepspeed_config.dist, "get_rank", lambda *_: 0)
    monkeypatch.setattr(deepspeed_config.dist, "get_world_size", lambda *_: GPUS)

    class Ranks:
        def get_data_parallel_world_size(self) -> int:
            return GPUS

    read = deepspeed_config.DeepSpeedConfig(str(file), mpu=Ranks())
    assert read.train_batch_size == BATCH
    assert read.train_micro_batch_size_per_gpu == 1
    assert read.gradient_accumulation_steps == 2
    assert read.bfloat16_config.enabled == ("precision" not in plan)
    assert read.float16_config.enabled == ("fp16" in plan)
    for name, value in means.items():
        found = getattr(read.zero_config, name)
        assert (found.device if name.startswith("offload") and found else found) == value, name


# ---------------------------------------------------------------------------------- torchtitan


@pytest.mark.parametrize(
    ("plan", "means"),
    [
        ("zero=0", {"parallelism.data_parallel_replicate_degree": 16}),
        ("zero=3", {"parallelism.data_parallel_shard_degree": 16}),
        ("zero=3,data_shard=8", {"parallelism.data_parallel_replicate_degree": 2}),
        ("zero=3,reshard=false", {"parallelism.fsdp_reshard_after_forward": "never"}),
        ("zero=3,tensor=4", {"parallelism.tensor_parallel_degree": 4}),
        ("zero=3,context=2,context_form=ring", {"parallelism.context_parallel_degree": 2}),
        ("zero=3,offload=parameters", {"training.enable_cpu_offload": True}),
        ("zero=3,recompute=full", {"activation_checkpoint.mode": "full"}),
        ("zero=3,precision=fp32", {"training.mixed_precision_param": "float32"}),
        (
            "zero=3,precision=fp8-current,low_precision_gather=true",
            {
                "model.converters": ["quantize.linear.float8"],
                "quantize.linear.float8.enable_fsdp_float8_all_gather": True,
            },
        ),
        ("zero=0,pipeline=2", {"parallelism.pipeline_parallel_schedule": "1F1B"}),
        ("zero=0,pipeline=2,schedule=gpipe", {"parallelism.pipeline_parallel_schedule": "GPipe"}),
        (
            "zero=3,pipeline=2,virtual_stages=2",
            {"parallelism.pipeline_parallel_schedule": "Interleaved1F1B"},
        ),
        (
            "zero=0,pipeline=2,virtual_stages=2,schedule=zb-v",
            {"parallelism.pipeline_parallel_schedule": "ZBVZeroBubble"},
        ),
        (
            "zero=0,pipeline=2,virtual_stages=2,schedule=dualpipev",
            {"parallelism.pipeline_parallel_schedule": "DualPipeV"},
        ),
    ],
)
def test_torchtitan_reads_a_plan(plan, means, tmp_path):
    manager = pytest.importorskip("torchtitan.config").ConfigManager()
    distributed = pytest.importorskip("torchtitan.distributed")
    pytest.importorskip("torchtitan.components.quantization.float8")  # which registers converters
    from torch.distributed.pipelining.schedules import get_schedule_class
    from torchtitan.protocols.model_converter import _registry_model_converter_cls

    file = exported(tmp_path, "torchtitan", plan=plan) / "torchtitan.toml"
    read = manager.parse_args(["--job.config_file", str(file)])
    assert read.training.seq_len == 4096
    assert read.training.global_batch_size == BATCH
    # A pipeline's local batch is cut in micro-batches of the plan's size.
    stages = read.parallelism.pipeline_parallel_degree
    assert read.parallelism.pipeline_parallel_microbatch_size == 1
    assert read.training.local_batch_size == (1 if stages == 1 else BATCH * stages // GPUS)
    for name, value in means.items():
        found = read
        for part in name.split("."):
            found = getattr(found, part)
        assert found == value, name
    degrees = read.parallelism
    distributed.ParallelDims(
        dp_replicate=degrees.data_parallel_replicate_degree,
        dp_shard=degrees.data_parallel_shard_degree,
        cp=degrees.context_parallel_degree,
        tp=degrees.tensor_parallel_degree,
        pp=degrees.pipeline_parallel_degree,
        ep=degrees.expert_parallel_degree,
        etp=degrees.expert_tensor_parallel_degree,
        world_size=GPUS,
    )  # checks their product
    get_schedule_class(degrees.pipeline_parallel_schedule)
    assert set(read.model.converters) <= set(_registry_model_converter_cls)


@pytest.mark.parametrize(
    ("model", "layers"), [("llama3-8b", 32), ("llama3.1-70b", 80), ("llama3.1-405b", 126)]
)
def test_torchtitan_has_the_model(model, layers, tmp_path):
    manager = pytest.importorskip("torchtitan.config").ConfigManager()
    specs = pytest.importorskip("torchtitan.protocols.train_spec")
    folder = exported(tmp_path, "torchtitan", plan="zero=3,tensor=8", nodes=32, model=model)
    read = manager.parse_args(["--job.config_file", str(folder / "torchtitan.toml")])
    assert specs.get_train_spec(read.model.name).model_args[read.model.flavor].n_layers == layers


# ---------------------------------------------------------------------------- Kubernetes, Slurm


@pytest.mark.parametrize("nodes", [1, 2])
@pytest.mark.parametrize(
    ("tool", "plan"), [("", "zero=1"), ("megatron", "zero=1,tensor=2"), ("deepspeed", "zero=3")]
)
def test_kubeflow_has_every_field_of_a_job(tool, plan, nodes, tmp_path):
    training = pytest.importorskip("kubeflow.training")
    yaml = pytest.importorskip("yaml")
    exported(tmp_path, *filter(None, [tool, "k8s"]), plan=plan, nodes=nodes)
    job = yaml.safe_load((tmp_path / "pytorchjob.yaml").read_text())

    class Response:
        data = json.dumps(job)

    client = training.ApiClient()
    read = client.deserialize(Response, "KubeflowOrgV1PyTorchJob")
    assert client.sanitize_for_serialization(read) == job  # a field it lacks would be gone
    assert read.spec.nproc_per_node == str(GPUS_OF_NODE)
    replicas = read.spec.pytorch_replica_specs
    assert sum(each.replicas for each in replicas.values()) == nodes
    for each in replicas.values():
        (container,) = each.template.spec.containers
        assert container.name == "pytorch"  # the operator looks for it
        assert container.resources.limits == {"nvidia.com/gpu": str(GPUS_OF_NODE)}


@pytest.fixture(scope="module")
def slurm(tmp_path_factory):
    """The environment of a Slurm that believes in 8 nodes of 8 GPUs, none of which is there."""
    programs = {}
    for each in ("munged", "slurmctld", "sbatch"):
        programs[each] = shutil.which(each, path=f"{os.environ['PATH']}:/usr/sbin:/usr/local/sbin")
        if programs[each] is None:
            pytest.skip(f"{each} is not installed")
    folder = tmp_path_factory.mktemp("slurm")
    folder.chmod(0o755)
    (folder / "state").mkdir()
    key = folder / "key"
    key.write_bytes(os.urandom(128))
    key.chmod(0o400)
    (folder / "gres.conf").write_text("NodeName=n[1-8] Name=gpu Count=8\n")
    (folder / "slurm.conf").write_text(
        f"""ClusterName=small
SlurmctldHost={socket.gethostname().split(".")[0]}(127.0.0.1)
SlurmUser={getpass.getuser()}
SlurmctldPort={free_port()}
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
CredType=cred/munge
StateSaveLocation={folder}/state
SlurmctldPidFile={folder}/slurmctld.pid
ProctrackType=proctrack/pgid
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
GresTypes=gpu
SuspendProgram=/bin/true
ResumeProgram=/bin/true
SuspendTime=600
NodeName=n[1-8] CPUs=64 RealMemory=1000 Gres=gpu:8 State=CLOUD
PartitionName=all Nodes=ALL Default=YES State=UP
"""
    )
    environment = {**os.environ, "SLURM_CONF": str(folder / "slurm.conf")}
    lines = [
        [programs["munged"], "--foreground", f"--socket={folder}/munge.socket", f"--key-file={key}",
         f"--pid-file={folder}/munge.pid", f"--seed-file={folder}/seed", "--force"],
        [programs["slurmctld"], "-c", "-D"],
    ]  # fmt: skip
    started = []
    log = (folder / "log").open("w")
    try:
        for each in lines:
            started.append(
                subprocess.Popen(each, env=environment, stdout=log, stderr=subprocess.STDOUT)
            )
            time.sleep(1)
        for _ in range(50):
            if outcome(["scontrol", "ping"], env=environment).stdout.count("is UP"):
                break
            time.sleep(0.2)
        else:
            pytest.skip(f"no Slurm starts here: {(folder / 'log').read_text()[-300:]}")
        yield environment
    finally:
        for each in reversed(started):
            each.terminate()
            each.wait(timeout=20)
        log.close()


@pytest.mark.parametrize(
    ("tool", "plan"),
    [("", "zero=1"), ("megatron", "zero=1,tensor=2"), ("accelerate", "zero=3"),
     ("deepspeed", "zero=3"), ("torchtitan", "zero=3")],
)  # fmt: skip
def test_slurm_would_start_the_job(tool, plan, tmp_path, slurm):
    folder = exported(tmp_path, *filter(None, [tool, "slurm"]), plan=plan)
    ran = outcome(["sbatch", "--test-only", "job.sbatch"], cwd=folder, env=slurm)
    assert ran.returncode == 0, ran.stderr
    assert "on nodes n[1-2] in partition all" in ran.stderr


def test_slurm_refuses_a_job_that_is_too_large(tmp_path, slurm):
    folder = exported(tmp_path, "slurm", plan="zero=1", nodes=9, batch=72)
    ran = outcome(["sbatch", "--test-only", "job.sbatch"], cwd=folder, env=slurm)
    assert ran.returncode != 0
    assert "node configuration is not available" in ran.stderr


def test_the_line_of_a_slurm_job_is_torchruns(tmp_path):
    pytest.importorskip("torch.distributed.run")
    exported(tmp_path, "slurm", plan="zero=1")
    environment = with_stand_ins(tmp_path, "torchrun")
    (tmp_path / "bin" / "srun").write_text('#!/bin/sh\nexec "$@"\n')
    (tmp_path / "bin" / "scontrol").write_text("#!/bin/sh\necho n1\necho n2\n")
    for each in ("srun", "scontrol"):
        (tmp_path / "bin" / each).chmod(0o755)
    environment |= {"SLURM_JOB_NODELIST": "n[1-2]", "SLURM_NNODES": "2", "SLURM_NODEID": "0"}
    run_script(tmp_path / "job.sbatch", environment)
    _, config, script = parsed_by_torchrun(arguments(tmp_path, "torchrun"))
    assert config.rdzv_endpoint == "n1:29500"
    assert script[-1:] == ["train.py"]


# -------------------------------------------------------------------------------------- traces


def test_holistic_trace_analysis_reads_a_predicted_step(tmp_path):
    analysis = pytest.importorskip("hta.trace_analysis")
    folder = tmp_path / "trace"
    answer = answer_of([COMMAND, "simulate", "llama3-8b-8-h100", "--trace", str(folder),
                        "--trace-format", "kineto", "--json"])  # fmt: skip
    traces = analysis.TraceAnalysis(trace_dir=str(folder))
    times = traces.get_temporal_breakdown(visualize=False)
    assert list(times["rank"]) == [0]
    row = times.iloc[0]
    parts = row["idle_time(us)"] + row["compute_time(us)"] + row["non_compute_time(us)"]
    assert parts == pytest.approx(row["kernel_time(us)"])
    # Between a step's first kernel and its last.
    assert row["kernel_time(us)"] * 1e-6 == pytest.approx(answer["step_time_s"], rel=0.01)
    kinds, _ = traces.get_gpu_kernel_breakdown(visualize=False)
    assert {"COMPUTATION", "COMMUNICATION"} <= set(kinds["kernel_type"])
    overlap = traces.get_comm_comp_overlap(visualize=False)
    assert 0 < overlap["comp_comm_overlap_pctg"].iloc[0] <= 100


def test_a_profile_of_pytorch_on_a_cpu_is_compared(tmp_path):
    torch = pytest.importorskip("torch")
    from torch.profiler import ProfilerActivity, profile, schedule

    file = tmp_path / "rank0.pt.trace.json"
    torch.manual_seed(1)
    layer = torch.nn.TransformerEncoderLayer(64, 4, dim_feedforward=128, batch_first=True)
    model = torch.nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
    optimizer = torch.optim.AdamW(model.parameters())
    tokens = torch.randn(4, 16, 64)
    with profile(
        activities=[ProfilerActivity.CPU],
        schedule=schedule(wait=1, warmup=1, active=5),
        on_trace_ready=lambda done: done.export_chrome_trace(str(file)),
        record_shapes=True,
    ) as recorded:
        for _ in range(7):
            optimizer.zero_grad()
            model(tokens).square().mean().backward()
            optimizer.step()
            recorded.step()
    asked = [COMMAND, "compare", str(SCENARIOS / "gpt-1rank.json"), str(file)]
    answer = answer_of([*asked, "--json"])
    assert answer["source"] == "profiler"
    assert answer["steps"]["count"] + answer["steps"]["left_out"] == 5
    classes = {each["class"]: each["measured_s"] for each in answer["classes"]}
    assert sum(classes.values()) == pytest.approx(answer["measured_s"], rel=1e-9)
    for each in ("gemm", "memory_bound", "optimizer"):
        assert 0 < classes[each] < answer["measured_s"]
    assert classes["communication"] == classes["pipeline"] == 0
    # [4 x 16, 64]: forward and two products backward of each linear layer; the first needs no
    # gradient of the tokens.
    calls = {
        tuple(each["sizes"]): each["measured"]["count"]
        for each in answer["shapes"]
        if each["measured"] and each["batch"] == 1
    }
    assert calls == {(64, 64, 192): 2 * 3 - 1, (64, 64, 64): 2 * 3, (64, 64, 128): 2 * 2 * 3}
    assert "Where the step goes" in outcome(asked).stdout
