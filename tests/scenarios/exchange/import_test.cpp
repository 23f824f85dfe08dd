#include "scenarios/exchange/import.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdlib>
#include <map>

#include "scenarios/exchange/meanings.hpp"
#include "scenarios/scenario/scenario.hpp"
#include "sim/input/csv.hpp"
#include "sim/input/text.hpp"
#include "tests/models/questions.hpp"
#include "tests/scenarios/command.hpp"

namespace orrery::scenarios {
namespace {

const std::string exchange_folder = std::string{ORRERY_SOURCE} + "/tests/scenarios/exchange/";

std::string sample(const std::string& name) {
  return exchange_folder + "samples/" + name;
}

ImportedLaunch imported_text(const std::string& name, const std::string& text,
                             const std::string& cluster = "dgx-h100 x 2") {
  return import_launch({read_launch_file(text, name)}, {.files = {}, .cluster = cluster});
}

/// The option with this name; a failure if there is none.
ImportedOption option_named(const ImportedLaunch& imported, const std::string& name) {
  for (const ImportedOption& each : imported.options) {
    if (each.option == name) return each;
  }
  FAIL("no option " << name);
  return {};
}

std::string plan_text(const Json& plan, const std::string& field) {
  if (!plan.contains(field)) return {};
  return plan[field].is_string() ? plan[field].get<std::string>() : plan[field].dump();
}

TEST_CASE("Samples of every tool are imported with the fields that they state") {
  const Table expected = Table::load(exchange_folder + "expected.csv");
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const Row row = expected[i];
    const ImportedLaunch imported = import_launch({.files = {sample(std::string{row.text("file")})},
                                                   .cluster = std::string{row.text("cluster")}});
    for (const std::string& field : expected.columns()) {
      if (field == "file" || field == "cluster") continue;
      std::string wanted{row.text(field)}, found = plan_text(imported.plan, field);
      if (wanted.empty()) continue;
      if (found.empty() && (wanted == "1" || wanted == "none")) continue;  // the plan's own default
      INFO(row.text("file") << ": " << field);
      if (row.text("file") == "megatron-gpt-legacy.sh" && field == "sequence") wanted = "true";
      CHECK(found == wanted);
    }
  }
}

TEST_CASE("Of options that name a field, the model or the cluster, 95 % are used") {
  std::size_t used = 0, missed = 0;
  const Table expected = Table::load(exchange_folder + "expected.csv");
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const Row row = expected[i];
    const ImportedLaunch imported = import_launch({.files = {sample(std::string{row.text("file")})},
                                                   .cluster = std::string{row.text("cluster")}});
    for (const ImportedOption& each : imported.options) {
      used += each.use == ImportedOption::Use::used;
      missed += each.use == ImportedOption::Use::not_understood;
      if (each.use == ImportedOption::Use::not_understood) {
        WARN(row.text("file") << ": " << each.option << ": " << each.says);
      }
    }
  }
  CHECK(used > 100);
  CHECK(20 * missed <= used + missed);
}

TEST_CASE("A Megatron script and its plan by hand are the same scenario") {
  const Scenario launched =
      Scenario::load(sample("megatron-llama70b.sh"), {.cluster = "dgx-h100 x 8"});
  const Scenario written = Scenario::load(
      std::nullopt,
      {.model = "llama3-70b",
       .cluster = "dgx-h100 x 8",
       .plan = "tensor=4,sequence=true,pipeline=8,virtual_stages=5,zero=1,micro_batch=1,"
               "global_batch=128,seq_len=8192,precision=bf16,recompute=selective,overlap=true,"
               "overlap_gather=true,low_precision_gather=false,"
               "embedding_counts=false,tensor_overlap=false",
       .software = "megatron-core"});
  CHECK(models::to_json(launched.question().plan) == models::to_json(written.question().plan));
  CHECK(launched.question().model.name == written.question().model.name);
  CHECK(models::predict(launched.question()).step == models::predict(written.question()).step);
}

// Source  Megatron-LM, training/arguments.py: --tp-comm-overlap is a switch, off without it
TEST_CASE("Megatron overlaps in the tensor group only where its script says so") {
  const auto imported = [](const std::string& more) {
    return imported_text("run.sh",
                         "torchrun --nproc-per-node 8 pretrain_gpt.py --num-layers 32 "
                         "--hidden-size 4096 --num-attention-heads 32 --seq-length 4096 "
                         "--max-position-embeddings 4096 --micro-batch-size 1 "
                         "--global-batch-size 64 --bf16 --sequence-parallel " +
                             more,
                         "dgx-h100");
  };
  const std::string eight = "--tensor-model-parallel-size 8 ";
  CHECK(imported(eight).plan["tensor_overlap"] == false);
  CHECK(imported(eight + "--tp-comm-overlap").plan["tensor_overlap"] == true);
  CHECK_FALSE(imported("").plan.contains("tensor_overlap"));  // one rank has no such group
  const ImportedLaunch refused = imported_text(
      "run.sh",
      "torchrun --nproc-per-node 8 pretrain_gpt.py --num-layers 32 --hidden-size 4096 "
      "--num-attention-heads 32 --seq-length 4096 --max-position-embeddings 4096 "
      "--micro-batch-size 1 --global-batch-size 64 --tensor-model-parallel-size 8 "
      "--tp-comm-overlap",
      "dgx-h100");
  CHECK(refused.plan["tensor_overlap"] == false);  // it asserts sequence parallelism
  const auto step = [](bool overlaps) {
    const std::string plan =
        "tensor=8,sequence=true,zero=1,micro_batch=1,global_batch=64,"
        "seq_len=4096,precision=bf16,tensor_overlap=";
    return models::predict(models::question("llama3-8b", "dgx-h100 x 1",
                                            plan + (overlaps ? "true" : "false"), "megatron-core"))
        .step;
  };
  CHECK(step(false) > step(true));
}

TEST_CASE("Each option is used, without effect, or not understood, with the reason") {
  const ImportedLaunch imported = imported_text(
      "run.sh",
      "torchrun --nnodes 2 --nproc-per-node 8 pretrain_gpt.py --tensor-model-parallel-size $TP "
      "--micro-batch-size 1 --bf16 --lr 1e-4 --moe-token-dispatcher-type allgather --new-flag 3");
  using Use = ImportedOption::Use;
  CHECK(option_named(imported, "tensor_model_parallel_size").use == Use::not_understood);
  CHECK(option_named(imported, "tensor_model_parallel_size").says == "${TP} is not known here");
  CHECK(option_named(imported, "micro_batch_size").says == "micro_batch 1");
  CHECK(option_named(imported, "lr").use == Use::without_effect);
  CHECK(option_named(imported, "moe_token_dispatcher_type").says ==
        "no value of a plan says 'allgather'");
  CHECK(option_named(imported, "new_flag").says == "megatron has no such option");
  CHECK(imported.gpus == 16);
  CHECK(imported.plan["global_batch"] == 16);  // without the flag: one micro-batch on each of 16
}

TEST_CASE("A launcher says the cluster and NCCL's environment") {
  const ImportedLaunch imported =
      import_launch({.files = {sample("job.sbatch")}, .cluster = "dgx-h100"});
  CHECK(imported.cluster == "dgx-h100 x 4");
  CHECK(imported.gpus == 32);
  CHECK(imported.collectives == Json({{"NCCL_ALGO", "Ring"}}));
  CHECK(option_named(imported, "NCCL_IB_HCA").use == ImportedOption::Use::without_effect);  // mlx5
  CHECK(option_named(imported, "time").use == ImportedOption::Use::without_effect);
}

ImportedLaunch with_environment(const std::string& exports) {
  return import_launch(
      {read_launch_file(exports + "\ntorchrun --nnodes 4 --nproc-per-node 8 train.py\n", "run.sh")},
      {.files = {}, .cluster = "dgx-h100"});
}

TEST_CASE("NCCL's environment changes the cluster where it chooses NICs") {
  const ImportedLaunch two =
      with_environment("export NCCL_IB_HCA==mlx5_0:1,mlx5_3:1\nexport NCCL_SOCKET_IFNAME=eth0");
  CHECK(two.cluster["node"]["nics"] == 2);
  CHECK(two.cluster["nodes"] == 4);
  CHECK(option_named(two, "NCCL_IB_HCA").says == "cluster NICs of a node 2");
  CHECK(option_named(two, "NCCL_SOCKET_IFNAME").use == ImportedOption::Use::without_effect);
  const ImportedLaunch sockets =
      with_environment("export NCCL_IB_DISABLE=1\nexport NCCL_SOCKET_IFNAME=eth0");
  CHECK(sockets.cluster["node"]["nics"] == 1);
  CHECK(sockets.cluster["fabric"]["latency_class"] == "ethernet");
  CHECK(with_environment("export NCCL_IB_HCA=mlx5").cluster == "dgx-h100 x 4");
  CHECK(option_named(with_environment("export NCCL_IB_HCA=^mlx5_2"), "NCCL_IB_HCA").use ==
        ImportedOption::Use::not_understood);
  // Both are what the next command reads.
  const auto step = [](const ImportedLaunch& imported) {
    Json scenario = imported.scenario();
    scenario["model"] = "llama3-8b";
    scenario["plan"] = {{"zero", 3}, {"micro_batch", 1}, {"global_batch", 32}, {"seq_len", 4096}};
    const Scratch scratch;
    const Ran ran = orrery("simulate " + scratch.write("s.json", scenario.dump()) + " --json");
    REQUIRE(ran.exit_code == 0);
    return parsed(ran.out)["step_time_s"].get<double>();
  };
  CHECK(step(two) > step(with_environment("")));
  CHECK(step(sockets) > step(two));
}

/// A note that begins so; a failure if there is none.
void check_note(const ImportedLaunch& imported, const std::string& begin) {
  std::string all;
  for (const std::string& each : imported.notes) all += "\n" + each;
  INFO("expected: " << begin << "\nfound:" << all);
  CHECK(all.find("\n" + begin) != std::string::npos);
}

TEST_CASE("mpirun says processes, hosts and NCCL's environment") {
  const ImportedLaunch listed = imported_text(
      "run.sh",
      "mpirun -np 16 -H node1:8,node2:8 --bind-to none -x NCCL_ALGO=Tree -x PATH --mca "
      "btl_tcp_if_include eth0 --allow-run-as-root python pretrain_gpt.py --micro-batch-size 1 "
      "--bf16 --lr 1e-4\n",
      "dgx-h100");
  CHECK(listed.cluster == "dgx-h100 x 2");
  CHECK(listed.gpus == 16);
  CHECK(listed.plan["micro_batch"] == 1);
  CHECK(listed.collectives == Json({{"NCCL_ALGO", "Tree"}}));
  CHECK(listed.notes.empty());
  using Use = ImportedOption::Use;
  CHECK(option_named(listed, "np").says == "cluster tasks 16");
  CHECK(option_named(listed, "H").use == Use::used);
  CHECK(option_named(listed, "mca").use == Use::without_effect);
  CHECK(option_named(listed, "allow-run-as-root").use == Use::without_effect);
  CHECK(option_named(listed, "bind-to").use == Use::not_understood);
  const ImportedLaunch mapped = imported_text(
      "run.sh", "/opt/mpi/bin/mpirun -n 32 --map-by ppr:8:node python train.py\n", "dgx-h100");
  CHECK(mapped.cluster == "dgx-h100 x 4");
  const Scratch scratch;
  scratch.write("hosts.txt", "# rack 3\nnode1 slots=8 max_slots=8\nnode2 slots=8\nnode3 slots=8\n");
  const ImportedLaunch filed = import_launch(
      {.files = {scratch.write("go.sh", "mpirun --hostfile hosts.txt python train.py\n")},
       .cluster = "dgx-h100"});
  CHECK(filed.cluster == "dgx-h100 x 3");
  check_note(
      imported_text("run.sh", "mpirun -np 16 --hostfile gone.txt --map-by node python t.py\n"),
      "gone.txt is not there: the number of nodes is what else says it");
}

TEST_CASE("Sizes on which launcher and script contradict each other are named") {
  const std::string head = "#!/bin/bash\n#SBATCH --nodes=4 --gpus-per-node=8\n";
  const ImportedLaunch nodes = imported_text(
      "job.sh", head + "srun torchrun --nnodes 2 --nproc-per-node 8 train.py\n", "dgx-h100");
  check_note(nodes,
             "4 cluster nodes by nodes (job.sh:line 2), 2 by nnodes (job.sh:line 3): the latter "
             "counts");
  CHECK(nodes.cluster == "dgx-h100 x 2");
  const ImportedLaunch tasks =
      imported_text("job.sh", head + "mpirun -np 16 python train.py\n", "dgx-h100");
  check_note(tasks, "4 nodes of 8 GPUs are 32, and 16 processes are started: those count");
  CHECK(tasks.cluster == "dgx-h100 x 2");
  const ImportedLaunch few = imported_text(
      "job.sh", "#SBATCH --nodes=4 --gpus-per-node=8 --ntasks-per-node=4\nsrun python train.py\n",
      "dgx-h100");
  check_note(few, "8 GPUs and 4 processes a node: 4 GPUs of each do nothing");
  const auto of_tasks = [](const std::string& tasks, const std::string& line) {
    const std::string text = "#!/bin/bash\n#SBATCH --nodes=4 --gpus-per-node=8 ";
    return import_launch({read_launch_file(text + tasks + "\nsrun " + line + "\n", "job.sh")},
                         {.files = {}, .cluster = {}});
  };
  CHECK(of_tasks("--ntasks-per-node=4", "python train.py").gpus == 16);
  const ImportedLaunch many = of_tasks("--ntasks-per-node=16", "python train.py");
  CHECK(many.gpus == 32);
  check_note(many, "8 GPUs and 16 processes a node: several share a GPU; the plan has one on each");
  // A node's only task starts the processes of its GPUs, or is one process for all.
  for (const char* tasks : {"--ntasks-per-node=1", "--ntasks=4"}) {
    for (const char* line :
         {"accelerate launch train.py", "torchrun train.py", "python train.py"}) {
      INFO(tasks << " " << line);
      const ImportedLaunch single = of_tasks(tasks, line);
      CHECK(single.gpus == 32);
      CHECK(single.nodes == 4);
      CHECK(std::ranges::none_of(single.notes, [](const std::string& note) {
        return note.find("processes") != std::string::npos;
      }));
    }
  }
  // Nobody states nodes: all tasks over those of a node.
  const auto without_nodes = [](const std::string& sizes, const std::string& line) {
    return import_launch(
        {read_launch_file("#!/bin/bash\n#SBATCH " + sizes + "\nsrun " + line + "\n", "job.sh")},
        {.files = {}, .cluster = "dgx-h100"});
  };
  const ImportedLaunch one_each = without_nodes("--ntasks=4 --ntasks-per-node=1 --gpus-per-node=8",
                                                "torchrun --nproc-per-node 8 train.py");
  CHECK(one_each.nodes == 4);
  CHECK(one_each.gpus == 32);
  CHECK(one_each.cluster == "dgx-h100 x 4");
  const ImportedLaunch one_gpu =
      without_nodes("--ntasks=16 --ntasks-per-node=8 --gpus-per-node=8", "python train.py");
  CHECK(one_gpu.nodes == 2);
  CHECK(one_gpu.gpus == 16);
  check_note(imported_text("job.sh", head + "srun torchrun train.py\n", "dgx-h100 x 8"),
             "the files start 32 processes, --cluster dgx-h100 x 8 has 64 GPUs: the plan is for "
             "those");
  check_note(imported_text("ds.json",
                           R"({"train_batch_size": 128, "train_micro_batch_size_per_gpu": 2,
                               "gradient_accumulation_steps": 2})"),
             "a batch of 128 is not 2 x 2 passes x 16 replicas: the batch counts");
  // With torchrun a task is a node's launcher, not a GPU's process.
  CHECK(imported_text("job.sh",
                      "#SBATCH --nodes=2 --ntasks-per-node=1 --gpus-per-node=8\nsrun torchrun "
                      "--nproc-per-node 8 train.py\n",
                      "dgx-h100")
            .notes.empty());
}

TEST_CASE("NCCL's variables are harmless, used, or named as what no field says") {
  using Use = ImportedOption::Use;
  const ImportedLaunch imported = with_environment(
      "export NCCL_DEBUG=INFO NCCL_IB_TIMEOUT=22 NCCL_P2P_DISABLE=1 NCCL_NVLS_ENABLE=0 "
      "NCCL_PROTO=Simple");
  CHECK(option_named(imported, "NCCL_DEBUG").use == Use::without_effect);
  CHECK(option_named(imported, "NCCL_IB_TIMEOUT").use == Use::without_effect);
  CHECK(option_named(imported, "NCCL_P2P_DISABLE").use == Use::not_understood);
  CHECK(option_named(imported, "NCCL_NVLS_ENABLE").says ==
        "may change what NCCL does: no field says it");
  CHECK(option_named(imported, "NCCL_PROTO").use == Use::used);
  // As a PyTorchJob has them.
  const ImportedLaunch job = imported_text(
      "job.yaml",
      "kind: PyTorchJob\nspec:\n  nprocPerNode: \"8\"\n  pytorchReplicaSpecs:\n    Master:\n"
      "      replicas: 1\n      template:\n        spec:\n          containers:\n"
      "            - name: pytorch\n              env:\n"
      "                - {name: NCCL_ALGO, value: Ring}\n                - {name: A, value: b}\n",
      "dgx-h100");
  CHECK(job.collectives == Json({{"NCCL_ALGO", "Ring"}}));
}

TEST_CASE("NCCL_TOPO_FILE changes a node's NICs, their rate and which GPU each is near") {
  const auto topology = [](int nics, int gigabits) {
    std::string text = "<system version=\"1\">\n<cpu numaid=\"0\" arch=\"x86_64\">\n";
    for (int i = 0; i < 8; ++i) {
      text += "<pci busid=\"000" + std::to_string(i) +
              ":00:00.0\" class=\"0x060400\" link_speed=\"32.0 GT/s PCIe\" "
              "link_width=\"16\">\n<pci busid=\"000" +
              std::to_string(i) +
              ":01:00.0\" class=\"0x030200\" link_speed=\"32.0 GT/s PCIe\" "
              "link_width=\"16\"><gpu dev=\"" +
              std::to_string(i) + "\" sm=\"90\" rank=\"" + std::to_string(i) + "\"/></pci>\n";
      if (i < nics) {
        text += "<pci busid=\"000" + std::to_string(i) +
                ":02:00.0\" class=\"0x020700\" link_speed=\"32.0 GT/s PCIe\" "
                "link_width=\"16\"><nic><net name=\"mlx5_" +
                std::to_string(i) + "\" dev=\"" + std::to_string(i) + "\" speed=\"" +
                std::to_string(gigabits * 1000) + "\" port=\"1\"/></nic></pci>\n";
      }
      text += "</pci>\n";
    }
    return text + "</cpu>\n</system>\n";
  };
  const Scratch scratch;
  const auto with_topology = [&](const std::string& text) {
    scratch.write("topo.xml", text);
    return import_launch(
        {.files = {scratch.write("run.sh",
                                 "export NCCL_TOPO_FILE=/etc/nccl/topo.xml\n"
                                 "torchrun --nnodes 4 --nproc-per-node 8 train.py\n")},
         .cluster = "dgx-h100"});
  };
  const ImportedLaunch four = with_topology(topology(4, 200));
  CHECK(option_named(four, "NCCL_TOPO_FILE").says == "cluster node of 8 GPUs and 4 NICs");
  CHECK(four.cluster["node"]["nics"] == 4);
  CHECK(four.cluster["node"]["nic_bandwidth"] == "25 GB/s");
  CHECK(four.cluster["node"]["gpu_nics"].size() == 8);
  CHECK(four.cluster["node"]["gpu"]["name"] == "h100-sxm-80gb");  // the cluster's
  CHECK(four.cluster["nodes"] == 4);
  const auto step = [](const ImportedLaunch& imported) {
    Json scenario = imported.scenario();
    scenario["model"] = "llama3-8b";
    scenario["plan"] = {{"zero", 3}, {"micro_batch", 1}, {"global_batch", 32}, {"seq_len", 4096}};
    const Scratch own;
    const Ran ran = orrery("simulate " + own.write("s.json", scenario.dump()) + " --json");
    INFO(ran.error);
    REQUIRE(ran.exit_code == 0);
    return parsed(ran.out)["step_time_s"].get<double>();
  };
  CHECK(step(four) > 1.2 * step(with_topology(topology(8, 400))));
  const ImportedLaunch gone = with_environment("export NCCL_TOPO_FILE=/nowhere/t.xml");
  CHECK(option_named(gone, "NCCL_TOPO_FILE").use == ImportedOption::Use::not_understood);
  CHECK(gone.cluster == "dgx-h100 x 4");
}

TEST_CASE("torchtitan's float8 counts where its converter is named, by either name") {
  const auto precision = [](const std::string& converters) {
    return imported_text("t.toml",
                         "[model]\nname = \"qwen3\"\nflavor = \"32B\"\n" + converters +
                             "[training]\nmixed_precision_param = \"bfloat16\"\n[parallelism]\n"
                             "tensor_parallel_degree = 1\n[quantize.linear.float8]\n"
                             "recipe_name = \"tensorwise\"\n")
        .plan.value("precision", "");
  };
  CHECK(precision("converters = [\"quantize.linear.float8\"]\n") == "fp8-current");
  CHECK(precision("converters = [\"float8\", \"moe\"]\n") == "fp8-current");
  CHECK(precision("converters = []\n") == "bf16");
}

TEST_CASE("The width of GPT-NeoX's gated MLP is 2/3 of what is stated, rounded up") {
  const auto width = [](const std::string& more) {
    const ImportedLaunch imported = imported_text(
        "neox.yml",
        "{pipe_parallel_size: 1, model_parallel_size: 1, num_layers: 40, hidden_size: "
        "5120, num_attention_heads: 40, seq_length: 2048, norm: rmsnorm, " +
            more + "}\n");
    return imported.model.is_string() ? imported.model : imported.model["ffn_hidden"];
  };
  // 40960 x 2/3 / 2 = 13653, to a multiple of 256.
  CHECK(width("intermediate_size: 40960, activation: swiglu, mlp_multiple_of: 256") == 13824);
  CHECK(width("activation: swiglu") == 6826);  // 4 x 5120 x 2/3 / 2
  CHECK(width("expansion_factor: 3, mlp_multiple_of: 100") == 15400);
}

TEST_CASE("Slurm's own configuration says nodes and GPUs") {
  const std::string text =
      "ClusterName=c\nNodeName=login[1-2] CPUs=8\nNodeName=node[001-014,20-21] CPUs=96 "
      "Gres=gpu:h100:8 # sixteen\nNodeName=old1 Gres=gpu:a100:4\nPartitionName=p Nodes=ALL\n";
  const ImportedLaunch imported =
      import_launch({read_launch_file(text, "slurm.conf")}, {.files = {}, .cluster = "dgx-h100"});
  CHECK(imported.nodes == 16);
  CHECK(imported.gpus == 128);
  CHECK(imported.cluster == "dgx-h100 x 16");
  CHECK(
      imported.notes.front() ==
      "slurm.conf: 1 nodes with gpu:a100:4 are another cluster; the 16 with gpu:h100:8 are taken");
  CHECK_THROWS_WITH(read_launch_file("NodeName=n[1-3 Gres=gpu:8\n", "slurm.conf"),
                    "slurm.conf:line 1: expected hosts such as node[01-16], found \"n[1-3\"");
  CHECK_THROWS_WITH(read_launch_file("NodeName=n[3-1] Gres=gpu:8\n", "slurm.conf"),
                    "slurm.conf:line 1: expected hosts such as node[01-16], found \"n[3-1]\"");
}

TEST_CASE("A script of two trainings says so") {
  const std::string one = "torchrun --nproc-per-node 8 pretrain_gpt.py --micro-batch-size 1\n";
  CHECK(imported_text("run.sh", one).notes.empty());
  const ImportedLaunch both = imported_text("run.sh", one + one);
  REQUIRE(both.notes.size() == 1);
  CHECK(both.notes[0] ==
        "run.sh: starts 2 trainings; where they differ the last one holds: import one at a time");
}

TEST_CASE("A pipeline layout says layers of chunks") {
  const ImportedLaunch imported = imported_text(
      "run.sh",
      "python pretrain_gpt.py --num-layers 14 --hidden-size 1024 --num-attention-heads 16 "
      "--pipeline-model-parallel-size 2 --pipeline-model-parallel-layout 'Et*3|t*4|t*4|t*3,L'");
  CHECK(imported.plan["virtual_stages"] == 2);
  CHECK(imported.plan["stage_layers"] == Json({3, 4, 4, 3}));
}

TEST_CASE("Sequence parallelism without tensor parallelism is dropped with a note") {
  const ImportedLaunch imported = imported_text(
      "run.sh", "python pretrain_gpt.py --sequence-parallel --micro-batch-size 1 --bf16 --lr 1");
  CHECK_FALSE(imported.plan.contains("sequence"));
  CHECK(imported.notes.front() ==
        "sequence parallelism needs tensor parallelism; dropped, as Megatron does");
}

TEST_CASE("Adapters, a paged optimizer and tiles of an MLP are read as their tool names them") {
  const std::string axolotl =
      "base_model: meta-llama/Meta-Llama-3-8B\nadapter: lora\nlora_r: 8\nsequence_len: 16384\n"
      "micro_batch_size: 1\ngradient_accumulation_steps: 1\noptimizer: paged_adamw_8bit\n"
      "tiled_mlp: true\n";
  const Json single =
      imported_text("run.yaml", axolotl + "lora_target_modules: [q_proj, v_proj, o_proj]\n").plan;
  CHECK(single["lora_targets"] == Json({"q_proj", "v_proj", "projection"}));
  CHECK(single["lora_rank"] == 8);
  CHECK(single["moments"] == "int8");
  CHECK(single["paged_optimizer"] == true);
  CHECK(single["tiled_mlp"] == 4);  // 16,384 tokens in tiles of 4,096, the width of a row
  const Json stated = imported_text("run.yaml", axolotl + "tiled_mlp_num_shards: 2\n").plan;
  CHECK(stated["tiled_mlp"] == 2);
  // Without an adapter its rank says nothing.
  std::string full = axolotl;
  full.replace(full.find("adapter: lora\n"), 14, "");
  CHECK_FALSE(imported_text("run.yaml", full).plan.contains("lora_rank"));
}

TEST_CASE("Megatron's experts, offload and transfers are read as it means them") {
  const std::string script =
      "torchrun --nnodes 2 --nproc-per-node 8 pretrain_gpt.py --num-layers 8 --hidden-size 1024 "
      "--num-attention-heads 16 --micro-batch-size 1 --bf16 --seq-length 2048 "
      "--max-position-embeddings 2048 --vocab-size 32000 --swiglu ";
  const auto plan = [&](const std::string& more) {
    return imported_text("run.sh", script + more).plan;
  };
  const std::string experts = "--num-experts 8 --moe-router-topk 2 --moe-ffn-hidden-size 512 ";
  CHECK(plan(experts)["expert_gemms"] == "sequential");  // without its flag
  CHECK(plan(experts + "--moe-grouped-gemm")["expert_gemms"] == "grouped");
  CHECK_FALSE(plan("--moe-grouped-gemm").contains("expert_gemms"));
  CHECK_FALSE(plan("--moe-permute-fusion").contains("permute_fusion"));
  const std::string offload = "--use-distributed-optimizer --optimizer-cpu-offload ";
  CHECK(plan(offload + "--optimizer-offload-fraction 0.5")["optimizer_offload_fraction"] == 0.5);
  CHECK_FALSE(plan("--optimizer-offload-fraction 0.5").contains("optimizer_offload_fraction"));
  const std::string stages = "--pipeline-model-parallel-size 4 ";
  CHECK(plan(stages + "--no-overlap-p2p-communication")["overlap_p2p"] == false);
  CHECK_FALSE(plan("--no-overlap-p2p-communication").contains("overlap_p2p"));
}

TEST_CASE("Intervals of evaluations and checkpoints are read in steps") {
  const std::string script =
      "torchrun --nnodes 2 --nproc-per-node 8 pretrain_gpt.py --num-layers 8 --hidden-size 1024 "
      "--num-attention-heads 16 --micro-batch-size 1 --bf16 --seq-length 2048 "
      "--max-position-embeddings 2048 --vocab-size 32000 --swiglu ";
  const auto run = [&](const std::string& more) {
    return imported_text("run.sh", script + more).run;
  };
  CHECK(run("").is_null());
  CHECK(run("--eval-interval 500 --eval-iters 20 --save-interval 1000") ==
        Json{{"checkpoint", {{"every_steps", 1000}}},
             {"evaluation", {{"every_steps", 500}, {"iterations", 20}}}});
  CHECK(run("--eval-interval 500")["evaluation"]["iterations"] == 100);  // Megatron's default
  CHECK(run("--eval-interval 500 --eval-iters 0").is_null());
  // Transformers evaluates on the whole set, whose size no file states.
  const ImportedLaunch whole = imported_text(
      "run.yaml",
      "base_model: meta-llama/Meta-Llama-3-8B\nsequence_len: 4096\nmicro_batch_size: 1\n"
      "gradient_accumulation_steps: 1\neval_steps: 50\nsave_steps: 200\n");
  CHECK(whole.run == Json{{"checkpoint", {{"every_steps", 200}}}});
  CHECK(whole.notes.back().find("/run/evaluation left out") != std::string::npos);
}

TEST_CASE("Micro-batches that recompute in part are read where there is a part") {
  const std::string config =
      "model:\n  num_layers: 8\n  hidden_size: 1024\n  num_attention_heads: 16\n  seq_length: "
      "2048\n"
      "  vocab_size: 32000\n  pipeline_model_parallel_size: 4\n  recompute_granularity: full\n"
      "  num_microbatches_with_partial_activation_checkpoints: 2\n  recompute_num_layers: 1\n"
      "train:\n  micro_batch_size: 1\n  global_batch_size: 16\n";
  const ImportedLaunch block =
      imported_text("bridge.yaml", std::string{config}.insert(7, "  recompute_method: block\n"));
  CHECK(block.plan["partial_recompute_micro_batches"] == 2);
  CHECK(block.plan["recompute_layers"] == 1);
  const ImportedLaunch uniform =
      imported_text("bridge.yaml", std::string{config}.insert(7, "  recompute_method: uniform\n"));
  CHECK_FALSE(uniform.plan.contains("partial_recompute_micro_batches"));
}

TEST_CASE("axolotl casts what peft upcast next to 4-bit weights back") {
  const std::string yaml =
      "base_model: meta-llama/Meta-Llama-3-8B\nadapter: qlora\nload_in_4bit: true\n"
      "sequence_len: 4096\nmicro_batch_size: 1\ngradient_accumulation_steps: 1\n";
  CHECK(imported_text("run.yaml", yaml).plan["kbit_upcast"] == false);
}

TEST_CASE("A file of no known tool is refused by what is known") {
  CHECK_THROWS_WITH(
      read_launch_file("a: 1\n", "x.yaml"),
      Catch::StartsWith("x.yaml: no key tells which tool the file is of; known: megatron"));
  CHECK_THROWS_WITH(read_launch_file(R"({"model_type": "llama"})", "config.json"),
                    "config.json: is a model's config.json, not a launch file; --model config.json "
                    "takes it in simulate and plan, show models config.json counts it");
  CHECK_THROWS_WITH(read_launch_file("a: [1\n", "x.yaml"), Catch::StartsWith("x.yaml:line "));
  CHECK_THROWS_WITH(read_launch_file("a = \n", "x.toml"),
                    Catch::StartsWith("x.toml:line 1: is not TOML"));
  CHECK_THROWS_WITH(read_launch_file("echo hello --world\n", "x.sh"),
                    Catch::StartsWith("x.sh: has no command that trains"));
  std::string bomb = "a: &a [1,1,1,1,1,1,1,1,1,1]\n";
  for (char c = 'b'; c < 'i'; ++c) {
    const std::string before(1, static_cast<char>(c - 1));
    bomb += std::string(1, c) + ": &" + c + " [*" + before;
    for (int i = 0; i < 9; ++i) bomb += ",*" + before;
    bomb += "]\n";
  }
  CHECK_THROWS_WITH(json_of_yaml(bomb, "x.yaml"), Catch::EndsWith("more than 100,000 values"));
}

/// Whether a list of the tool has the option, by itself or below one of the tool's sections.
bool is_listed(const LaunchTool& tool, const std::string& option) {
  return std::ranges::any_of(tool.lists, [&](std::string_view list) {
    const auto& options = options_in(list);
    return options.contains(option) ||
           std::ranges::any_of(split(tool.sections, ' '), [&](std::string_view section) {
             return options.contains(std::string{section} + "." + option);
           });
  });
}

TEST_CASE("Tables name options of the tools' lists and fields that exist") {
  std::map<std::string, bool> listed;  // by option; a table serves several tools
  for (const LaunchTool& tool : launch_tools()) {
    for (const std::string_view list : tool.lists) CHECK(options_in(list).size() > 20);
    for (const Meaning& row : meanings_of(tool)) {
      INFO(tool.name << " " << row.option << " " << row.field);
      CHECK_FALSE(row.field.empty());
      const bool special = row.option == "-" || row.option == "!" || row.option == "#";
      if (!special && row.way != Meaning::Way::in) {
        bool& somewhere = listed[row.option];
        somewhere = somewhere || is_listed(tool, row.option);
      }
      CHECK((row.way == Meaning::Way::out || row.option == "!" || row.option == "#" ||
             !row.means.empty()));
    }
  }
  for (const auto& [option, somewhere] : listed) {
    INFO(option);
    CHECK(somewhere);
  }
}

TEST_CASE("orrery import and simulate read launch files") {
  const Ran ran = orrery("import " + sample("megatron-llama70b.sh") + " --cluster dgx-h100 --json");
  CHECK(ran.exit_code == 0);
  const Json document = parsed(ran.out);
  CHECK(document["model"] == "llama3-70b");
  CHECK(document["cluster"] == "dgx-h100 x 8");
  CHECK(document["counts"]["used"].get<int>() > 20);
  CHECK(document["counts"]["not_understood"] == document["not_understood"].size());
  const Ran table = orrery("import " + sample("zero3.json"));
  CHECK(table.out.find("global_batch") != std::string::npos);
  const Ran simulated =
      orrery("simulate " + sample("megatron-llama70b.sh") + " --cluster 'dgx-h100 x 8' --json");
  INFO(simulated.error);
  CHECK(simulated.exit_code == 0);
  const Ran plan = orrery("simulate --model llama3-8b --cluster 'dgx-h100 x 2' --plan " +
                          sample("zero3.json") + " --set /plan/seq_len=4096 --json");
  INFO(plan.error);
  CHECK(parsed(plan.out)["step_time_s"].get<double>() > 0);
}

TEST_CASE("An option whose number is none is refused with its file, line and name") {
  const auto refused = [](const std::string& options) -> std::string {
    const std::string script =
        "torchrun --nproc-per-node 8 pretrain_gpt.py --hidden-size 4096 "
        "--num-attention-heads 32 --vocab-size 32000 " +
        options + "\n";
    try {
      import_launch({read_launch_file(script, "run.sh")}, {});
    } catch (const InputError& error) {
      return error.what();
    }
    return "";
  };
  CHECK(refused("--num-layers abc") ==
        "run.sh:line 1: --num-layers: expected a number, found 'abc'");
  CHECK(refused("--num-layers 32.5") ==
        "run.sh:line 1: --num-layers: expected a whole number, found '32.5'");
  CHECK(refused("--num-layers 32 --tensor-model-parallel-size two") ==
        "run.sh:line 1: --tensor-model-parallel-size: expected a number, found 'two'");
  CHECK(refused("--num-layers 32 --tensor-model-parallel-size 2") == "");
  CHECK(refused("--num-layers 32 --norm-epsilon 1e-5 --rotary-base 1e6") == "");
}

// A variable that is not set says neither 1 nor anything else.
TEST_CASE("A degree that a variable states is left open, and the note says so") {
  const std::string script =
      "torchrun --nproc-per-node 8 pretrain_gpt.py --num-layers 32 --hidden-size 4096 "
      "--num-attention-heads 32 --vocab-size 32000 --seq-length 4096 --micro-batch-size 1 "
      "--global-batch-size 64 --tensor-model-parallel-size $TPX --bf16\n";
  const ImportedLaunch open = import_launch({read_launch_file(script, "run.sh")}, {});
  CHECK_FALSE(open.plan.contains("tensor"));
  CHECK(open.plan["pipeline"] == 1);  // what is not written has Megatron's default
  CHECK(std::ranges::find(open.notes,
                          "run.sh:line 1: ${TPX} is not known here, which "
                          "--tensor-model-parallel-size needs: tensor is left open; set the "
                          "variable or state it") != open.notes.end());
  const ImportedLaunch set = import_launch({read_launch_file("TPX=4\n" + script, "run.sh")}, {});
  CHECK(set.plan["tensor"] == 4);
}

TEST_CASE("Of axolotl's dropout of adapters a plan says whether there is one") {
  const auto imported = [](const std::string& more) {
    return import_launch({read_launch_file("base_model: meta-llama/Llama-3.1-8B\nlora_r: 16\n"
                                           "sequence_len: 4096\nmicro_batch_size: 1\n" +
                                               more,
                                           "axolotl.yml")},
                         {});
  };
  const auto understood = [](const ImportedLaunch& each) {
    return std::ranges::none_of(each.options, [](const ImportedOption& option) {
      return option.use == ImportedOption::Use::not_understood;
    });
  };
  const ImportedLaunch some = imported("adapter: qlora\nload_in_4bit: true\nlora_dropout: 0.05\n");
  CHECK(some.plan["lora_dropout"] == true);
  CHECK(some.plan["task"] == "qlora");
  CHECK(understood(some));
  CHECK(some.notes.empty());
  for (const char* none : {"0", "0.0"}) {
    const ImportedLaunch without = imported(fmt::format("adapter: lora\nlora_dropout: {}\n", none));
    CHECK(without.plan["lora_dropout"] == false);
    CHECK(understood(without));
  }
  const ImportedLaunch plain = imported("adapter: lora\nload_in_4bit: true\n");
  CHECK(plain.plan["task"] == "lora");
  REQUIRE(plain.notes.size() == 1);
  CHECK(plain.notes[0].starts_with("frozen weights in 4 bits without adapter qlora"));
}

}  // namespace
}  // namespace orrery::scenarios
