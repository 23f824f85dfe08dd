#include "hardware/cluster/cluster.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <fstream>

#include "hardware/catalogue.hpp"

using namespace orrery;
using namespace orrery::hardware;

namespace {

/// A user's cluster file, expanded and read.
Cluster read(const std::string& text) {
  const Document file = Document::parse(text, "mine.json");
  const Document expanded = Document::from(expand_cluster(file.root()), "mine.json");
  return read_cluster(expanded.root());
}

std::string cluster_error(const std::string& text) {
  try {
    read(text);
  } catch (const InputError& error) {
    return error.what();
  }
  return "no error";
}

bool assumes(const Cluster& cluster, const std::string& sentence) {
  return std::count(cluster.assumptions.begin(), cluster.assumptions.end(), sentence) == 1;
}

/// A GPU that nobody has measured, on a node of its own; `change` is JSON laid over it.
std::string own_gpu(const std::string& change = "{}") {
  Json cluster = Json::parse(R"({
    "name": "mine",
    "node": {
      "name": "my-node",
      "gpu": {
        "name": "my-gpu", "generation": "hopper",
        "dense_peak": {"bf16": "500 TFLOP/s", "fp8": "1000 TFLOP/s"},
        "memory": "64 GiB", "memory_bandwidth": "2 TB/s", "scale_up": "200 GB/s"
      },
      "gpus": 8, "scale_up": {"kind": "nvswitch"}, "nics": 4, "nic_bandwidth": "100 Gb/s"
    },
    "nodes": 4,
    "fabric": {"kind": "fat_tree"}
  })");
  cluster.merge_patch(Json::parse(change));
  return cluster.dump();
}

}  // namespace

TEST_CASE("A GPU without curves uses the shares of peak of its generation and says so") {
  const Cluster cluster = read(own_gpu());
  CHECK(cluster.gpu().gemm.at(DType::bf16).compute_share ==
        named_gpu("h100").gemm.at(DType::bf16).compute_share);
  CHECK(assumes(cluster,
                "no measurement on this GPU: GEMMs of my-gpu at 0.785 of peak, its board_power is "
                "not stated; that of h100-sxm-80gb is used"));
  CHECK(assumes(cluster,
                "constants of the scale-up network not stated; those of nvlink4-switch assumed"));
  CHECK(assumes(cluster, "latency class of the fabric not stated; infiniband assumed"));
}

TEST_CASE("Fallback shares are multiplied by the GPU's own peak") {
  // Same share, half the peak and 2 TB/s: a product without traffic takes 989 / 500 as long.
  const Cluster cluster = read(own_gpu());
  const Flops work{1'000'000'000'000'000};
  const GemmCurve curve = named_gpu("h100").gemm.at(DType::bf16);
  const Time here = cluster.gpu().gemm_time(DType::bf16, work, 0_B) - curve.overhead;
  const Time there = named_gpu("h100").gemm_time(DType::bf16, work, 0_B) - curve.overhead;
  CHECK(ratio(here, there) == Approx(989.0 / 500));
}

TEST_CASE("A measured GPU reports fallbacks only for the dtypes and kernels that it lacks") {
  const Cluster cluster = named_cluster("dgx-h100 x 2");
  CHECK(cluster.assumptions.empty());
  const auto all = fallback_notes(cluster.gpu());
  CHECK(std::count_if(all.begin(), all.end(), [](const FallbackNote& each) {
          return each.of_this_gpu &&
                 each.sentence ==
                     "gemm fp16 curve of h100-sxm-80gb is missing; that of its bf16 is used";
        }) == 1);
}

TEST_CASE("A V100 computes in fp16 by the form of an A100's curve in bf16") {
  const Gpu gpu = named_gpu("v100");
  CHECK(gpu.gemm.at(DType::fp16).compute_share == 0.77);
  CHECK(gpu.gemm.at(DType::fp16).origin.fallback_from == "a100-sxm-80gb bf16");
  CHECK(gpu.gemm.count(DType::bf16) == 0);
  CHECK_THROWS_WITH(gpu.gemm_time(DType::bf16, Flops{1}, 1_B),
                    "v100-sxm-32gb does not support bf16");
  CHECK_THROWS_WITH(gpu.attention_time("flash-9", DType::fp16, {}),
                    "unknown attention kernel 'flash-9' on v100-sxm-32gb; known: cudnn "
                    "cudnn-fp8 flash-1 flash-2 flash-3 triton triton-2022");
}

TEST_CASE("A fabric's rate replaces that of the node's NICs") {
  // 8 NICs of 800 Gb/s: 800 GB/s a node.
  const Cluster cluster = read(R"({"node": "dgx-h100", "nodes": 2,
      "fabric": {"like": "infiniband-fat-tree-2", "bandwidth": "800 Gb/s"}})");
  CHECK(cluster.nic_bandwidth() == 100_GBps);
  CHECK(cluster.node_bandwidth() == 800_GBps);
}

TEST_CASE("Every number of an expanded cluster has one home") {
  const Json cluster = Catalogue::cluster("p5 x 4");
  CHECK(cluster.at("/fabric/bandwidth"_json_pointer) == "100 Gb/s");
  CHECK(cluster.at("/fabric/network"_json_pointer) == "54 us");
  CHECK(cluster.at("/node/gpu/dense_peak/bf16"_json_pointer) == "989 TFLOP/s");
  CHECK(cluster.at("/node/scale_up/base"_json_pointer) == "4.6 us");
  CHECK(cluster.at("/price_per_gpu_hour"_json_pointer) == "$6.88/h");
  CHECK(!cluster["node"].contains("nic_bandwidth"));
  CHECK(!cluster["node"].contains("price_per_gpu_hour"));
  CHECK(named_cluster("p5 x 4").price_source ==
        "AWS on demand, 2026-09, third-party price audit of 2026-10-06");
}

TEST_CASE("Expanding what is expanded changes nothing") {
  for (const char* name : {"selene", "p5 x 4", "gb200-nvl72 x 2", "l40s-8x", "gh200-1x"}) {
    const Document once = Document::from(Catalogue::cluster(name), name);
    CHECK(expand_cluster(once.root()) == once.json());
  }
  const Document mine = Document::parse(own_gpu(), "mine.json");
  const Document once = Document::from(expand_cluster(mine.root()), "mine.json");
  CHECK(expand_cluster(once.root()) == once.json());
}

TEST_CASE("What is like an entry is that entry with its changes, which are given, not sourced") {
  const Cluster cluster = read(R"({"nodes": 2, "node": {"like": "dgx-a100-80gb", "gpus": 4,
      "gpu": {"like": "a100", "memory": "40 GiB"}}})");
  CHECK(cluster.node.gpus == 4);
  CHECK(cluster.gpu().name == "a100-sxm-80gb");
  CHECK(cluster.gpu().memory == 40_GiB);
  CHECK(cluster.gpu().memory_bandwidth.count() == 2.039e12);
  const Document file = Document::parse(R"({"node": {"like": "dgx-a100-80gb", "gpus": 4}})", "m");
  CHECK(expand_cluster(file.root()).at("/node/sources/~1gpus"_json_pointer) == "given");
}

TEST_CASE("A GPU that is like another under a name of its own uses that one's curves") {
  const Cluster cluster = read(R"({"node": {"like": "hgx-b200",
      "gpu": {"like": "b300-sxm", "name": "b300-cut", "memory": "200 GiB"}}})");
  CHECK(assumes(cluster, "gemm bf16 curve of b300-cut is missing; that of b300-sxm is used"));
  CHECK(assumes(cluster, "attention cudnn curve of b300-cut is missing; that of b300-sxm is used"));
}

TEST_CASE("The collective constants follow the links that they were measured on") {
  const Cluster h100 = named_cluster("dgx-h100 x 2");
  CHECK(h100.collectives.base == Time{4'600'000});
  CHECK(h100.collectives.step == Time{820'000});
  CHECK(h100.collectives.ring_rate == 360_GBps);  // 0.8 of 450
  // 480 GB/s of bus bandwidth on 8 GPUs is 480 * 8 / 14 = 274 of size over time; share 0.61.
  CHECK(h100.collectives.switch_rate.count() == Approx(274e9).epsilon(0.003));
  CHECK(h100.collectives.network == 10_us);
  CHECK(h100.collectives.half_size == 95_us);
  CHECK(h100.collectives.half_size_growth == 88_us);
  CHECK(named_cluster("dgx-a100 x 2").collectives.switch_rate.count() == 0);
  const auto rates = read(R"({"node": {"like": "l40s-8x", "scale_up": "pcie4-l40s"}, "nodes": 1})")
                         .collectives.group_rates;
  REQUIRE(rates.size() == 3);
  CHECK(rates[1].ranks == 4);
  CHECK(rates[1].ring.count() == 5.1e9);
}

TEST_CASE("A node's host power is the server's less that of its GPUs") {
  // DGX H100: 10.2 kW - 8 x 700 W = 4.6 kW.
  CHECK(named_cluster("dgx-h100").node.host_power.count() == 4600);
}

TEST_CASE("Unconfirmed numbers are counted, the user's own are not") {
  CHECK(named_gpu("h200").unconfirmed == 0);
  CHECK(named_gpu("h100").unconfirmed == 3);  // backward ratio of flash-3, cudnn and triton
  const Gpu core = named_gpu("cpu-core");
  CHECK(core.unconfirmed == 22);  // all of it, until it is calibrated
  CHECK(read(own_gpu()).gpu().unconfirmed == 0);
  // How many ports a Quantum HDR switch has.
  CHECK(named_cluster("selene").unconfirmed == 1);
}

TEST_CASE("Mistakes in a cluster file are reported with their place") {
  CHECK(
      cluster_error(R"({"node": "dgx-h100", "nodes": 2, "fabrik": 1})") ==
      "mine.json:/fabrik: unknown key; did you mean 'fabric'? accepted: name, node, nodes, fabric, "
      "price_per_gpu_hour, measured_collectives, storage, decoding, site, software, assumptions, "
      "notes, sources");
  CHECK(cluster_error(R"({"node": {"like": "dgx-h100", "gpu": "h101"}})")
            .rfind("mine.json:/node/gpu: unknown GPU 'h101'; known: ", 0) == 0);
  CHECK(cluster_error(R"({"node": "dgx-h101"})")
            .rfind("mine.json:/node: unknown node 'dgx-h101'; known: ", 0) == 0);
  CHECK(cluster_error(own_gpu(R"({"node": {"gpu": {"memory": "64"}}})")) ==
        "mine.json:/node/gpu/memory: expected a size such as \"80 GiB\", found \"64\"");
  CHECK(cluster_error(own_gpu(R"({"node": {"gpu": {"memory": "0 GiB"}}})")) ==
        "mine.json:/node/gpu/memory: expected a size such as \"80 GiB\" above zero, found "
        "\"0 GiB\"");
  CHECK(cluster_error(own_gpu(R"({"node": {"gpu": {"dense_peak": {"bf17": "1 TFLOP/s"}}}})")) ==
        "mine.json:/node/gpu/dense_peak/bf17: unknown number format; known: fp64 fp32 tf32 fp16 "
        "bf16 fp8 fp4");
  CHECK(cluster_error(own_gpu(R"({"node": {"gpus": 577}})")) ==
        "mine.json:/node/gpus: expected an integer from 1 to 576, found 577");
  CHECK(cluster_error(own_gpu(R"({"fabric": {"efficiency": 1.2}})")) ==
        "mine.json:/fabric/efficiency: expected a share above 0, at most 1, found 1.2");
  CHECK(cluster_error(own_gpu(R"({"node": {"nics": 0}})")) ==
        "mine.json:/nodes: a cluster of several nodes needs NICs and a fabric");
  CHECK(cluster_error(own_gpu(R"({"node": {"scale_up": {"kind": "none"}}})")) ==
        "mine.json:/node/scale_up/kind: a node of several GPUs needs a scale-up network");
  CHECK(cluster_error(own_gpu(R"({"node": {"gpu": {"scale_up": null}}})")) ==
        "mine.json:/node/scale_up: bandwidth is missing, and my-gpu does not state it");
  CHECK(cluster_error("7") == "mine.json: expected a name or an object, found 7");
}

TEST_CASE("A leaf's ports that face down hold one node each on rails, else one for each NIC") {
  // 64 ports at 1 : 1: 32 face down. Rails: 32 nodes. A plain tree: 32 / 8 NICs = 4 nodes; 2 : 1
  // 42 / 8 = 5; NICs of 200 Gb/s on ports of 400: 64 / 8 = 8.
  CHECK(named_cluster("dgx-h100 x 64").fabric.nodes_per_leaf == 32);
  CHECK(named_cluster("dgx-h100 x 64").fabric.leaf.name == "quantum-2-ndr");
  CHECK(named_cluster("hgx-h100 x 64").fabric.nodes_per_leaf == 4);
  const auto tree = [](const std::string& change) {
    return read(
               R"({"node": "hgx-h100", "nodes": 64, "fabric": {"like": "infiniband-fat-tree-2", )" +
               change + "}}")
        .fabric.nodes_per_leaf;
  };
  CHECK(tree(R"("oversubscription": 2)") == 5);
  CHECK(tree(R"("bandwidth": "200 Gb/s")") == 8);
  CHECK(tree(R"("nodes_per_leaf": 20)") == 20);
}

TEST_CASE("A GPU without a sustained rate uses that of its generation") {
  const Cluster cluster = read(own_gpu());
  CHECK(cluster.gpu().sustained_share == named_gpu("h100").sustained_share);
  CHECK(assumes(cluster, "sustained share of my-gpu is missing; that of h100-sxm-80gb is used"));
}

TEST_CASE("The example in the catalogue's README is a cluster") {
  std::ifstream readme{ORRERY_SOURCE "/hardware/catalogue/README.md"};
  std::string example;
  for (std::string line; std::getline(readme, line);) {
    if (line.rfind("    ", 0) == 0) example += line;
  }
  const Cluster cluster = read(example);
  CHECK(cluster.gpus() == 64);  // 16 nodes of 4
  CHECK(cluster.nic_bandwidth() == 25_GBps);
  CHECK(cluster.fabric.oversubscription == 2);
}

TEST_CASE("A slot's generation and lanes decide its rate") {
  // 16 lanes of 16 GT/s, 128 of 130 bits: 31.5 GB/s; 8 lanes of 8 GT/s a quarter of that.
  const auto link = [](const std::string& slot) {
    return read(R"({"node": {"like": "rtx-3090-8x", "pcie": )" + slot + "}}").gpu().host_link;
  };
  CHECK(link(R"({"generation": 4})").count() == Approx(31.5e9).epsilon(0.001));
  CHECK(link(R"({"generation": 3, "lanes": 8})").count() == Approx(31.5e9 / 4).epsilon(0.001));
  CHECK(cluster_error(R"({"node": {"like": "rtx-3090-8x", "pcie": {"generation": 2}}})")
            .starts_with("mine.json:/node/pcie/generation: "));
}

TEST_CASE("Rates of groups follow the slot where they are shares of it") {
  const auto ring = [](const std::string& slot) {
    return read(R"({"node": {"like": "rtx-3090-8x", "pcie": )" + slot + "}}")
        .collectives.group_rates.back()
        .ring.count();
  };
  CHECK(ring(R"({"generation": 4})") == Approx(0.66 * 31.5e9).epsilon(0.001));
  CHECK(ring(R"({"generation": 3})") == Approx(0.66 * 31.5e9 / 2).epsilon(0.001));
  CHECK(cluster_error(R"({"node": {"like": "rtx-3090-8x", "scale_up": {"like": "pcie4",
      "group_rates": [{"ranks": 2, "ring": "20 GB/s", "ring_share": 0.5}]}}})") ==
        "mine.json:/node/scale_up/group_rates/0/ring_share: stated twice: ring is the rate, too");
}

TEST_CASE("A module of MI250X is two GPUs of 64 GiB") {
  const Cluster node = named_cluster("mi250x-4x");
  CHECK(node.node.gpus == 8);
  CHECK(node.gpu().memory.count() == Approx(64.0 * 1024 * 1024 * 1024).epsilon(0.001));
  CHECK(named_gpu("mi250x-gcd").name == "mi250x");
}

TEST_CASE("A GPU in three lines says what it assumes") {
  const Cluster own = read(R"({"node": {"gpus": 8, "gpu": {"dense_peak": "400 TFLOP/s",
      "memory": "96 GB", "memory_bandwidth": "2 TB/s", "board_power": "500 W"}}})");
  CHECK(own.gpu().name == "custom");
  CHECK(own.gpu().peak(DType::bf16) == own.gpu().peak(DType::fp16));
  CHECK(own.node.scale_up == ScaleUp::pcie);
  CHECK(own.node.scale_up_bandwidth.count() == 31.5e9);
  CHECK(assumes(own, "generation of the GPU not stated; other assumed"));
  CHECK(assumes(own, "slot of the GPU not stated; PCIe 4.0 x16 assumed"));
  CHECK(assumes(own, "scale-up network not stated; pcie4 assumed"));
  CHECK(own.gpu().unmeasured.starts_with("no measurement on this GPU: GEMMs of custom at "));
}

TEST_CASE("A cluster without a name is called by its node and its number of nodes") {
  const std::string node = R"({"like": "dgx-h100", "name": "ours"})";
  CHECK(read(R"({"node": )" + node + R"(, "nodes": 4})").name == "ours x 4");
  CHECK(read(R"({"node": )" + node + "}").name == "ours x 1");
  CHECK(read(R"({"name": "Lab", "node": )" + node + R"(, "nodes": 4})").name == "Lab");
}

TEST_CASE("A host that states no power has its share of what its GPUs draw, and says so") {
  const Cluster own = read(R"({"node": {"gpus": 4, "gpu": {"dense_peak": "400 TFLOP/s",
      "memory": "96 GB", "memory_bandwidth": "2 TB/s", "board_power": "500 W"}}})");
  CHECK(own.node.host_power.count() == Approx(0.8 * 4 * 500));
  CHECK(assumes(own, "host_power not stated; 1600 W assumed, 0.8 times the GPUs' power"));
  const Cluster dark = read(R"({"node": {"gpus": 4, "gpu": {"dense_peak": "400 TFLOP/s",
      "memory": "96 GB", "memory_bandwidth": "2 TB/s"}}})");
  CHECK(dark.node.host_power == Power{});
  CHECK(assumes(dark, "board_power of custom not stated; its energy is not counted"));
}

TEST_CASE("A node like another with fewer GPUs has as much of the host's power for each") {
  const Cluster pair = read(R"({"node": {"like": "rtx-4090-8x", "gpus": 2}})");
  CHECK(pair.node.host_power.count() == Approx(2880.0 / 4));
  CHECK(assumes(pair,
                "host_power not stated; 720 W assumed, as much for each of 2 GPUs as in a node "
                "of 8"));
  const Cluster stated =
      read(R"({"node": {"like": "rtx-4090-8x", "gpus": 2, "host_power": "300 W"}})");
  CHECK(stated.node.host_power == Power{300});
}

TEST_CASE("A limit under half of the board power is said, where the lowest is not known") {
  const std::string sentence = "power limit of 300 W is under half of the board power of ";
  const auto limited = [](const std::string& node) {
    return read(R"({"node": {"like": ")" + node + R"(", "gpu": {"like": ")" +
                std::string{node == "dgx-h100" ? "h100" : "h200"} +
                R"(", "power_limit": "300 W"}}})");
  };
  CHECK(assumes(limited("dgx-h200"),
                sentence + "h200-sxm-141gb; the lowest that it accepts is not known"));
  for (const std::string& each : limited("dgx-h100").assumptions) {
    CHECK_FALSE(each.starts_with(sentence));
  }
}

TEST_CASE("A host states its memory, and a cluster the size of its drives") {
  CHECK(named_cluster("dgx-h100").node.host_memory == 2000_GB);
  CHECK_FALSE(named_cluster("hgx-h100").node.host_memory.has_value());
  const Cluster own = read(R"({"node": {"like": "dgx-h100", "host_memory": "512 GiB"},
                               "storage": {"capacity": "30 TB"}})");
  CHECK(own.node.host_memory == 512_GiB);
  CHECK(own.storage.capacity == 30'000_GB);
}
