#include <catch2/catch.hpp>

#include "tests/scenarios/command.hpp"

namespace orrery::scenarios {
namespace {

TEST_CASE("show topology prints, draws and refuses") {
  const Scratch scratch;
  const Ran drawn = orrery("show topology 'dgx-h100 x 16' --svg " + scratch.path("a.svg") +
                           " --html " + scratch.path("a.html"));
  CHECK(drawn.exit_code == 0);
  CHECK(drawn.out.rfind("dgx-h100 x 16: nodes 16, GPUs 128, NICs 128 in all", 0) == 0);
  CHECK(scratch.read("a.svg").rfind("<svg", 0) == 0);
  CHECK(scratch.read("a.html").rfind("<!DOCTYPE html>", 0) == 0);
  const std::string table = scratch.write("t.txt", "GPU0 GPU1\nGPU0 X NV4\nGPU1 NV4 X\n");
  const Ran node = orrery("show topology " + table + " --json --svg " + scratch.path("b.svg"));
  CHECK(node.exit_code == 0);
  CHECK(Document::parse(node.out, "out").json()["node"]["json"]["gpus"] == 2);
  CHECK(scratch.read("b.svg").find("gpu1") != std::string::npos);
  const Ran nothing = orrery("show topology");
  CHECK(nothing.exit_code == 2);
  CHECK(nothing.error.rfind("show topology: expected a cluster", 0) == 0);
  const Ran broken = orrery("show topology " + scratch.write("c.xml", "<system>"));
  CHECK(broken.exit_code == 2);
  CHECK(broken.error.rfind(scratch.path("c.xml") + ":line 1: ", 0) == 0);
}

/// What stands between the quotes of `as a cluster: --cluster '...'`.
std::string printed_cluster(const std::string& out) {
  const std::string mark = "as a cluster: --cluster '";
  const std::size_t begin = out.find(mark);
  REQUIRE(begin != std::string::npos);
  const std::size_t end = out.find('\'', begin + mark.size());
  return out.substr(begin + mark.size(), end - begin - mark.size());
}

TEST_CASE("The cluster that show topology prints is one that the next command takes") {
  const Scratch scratch;
  const std::string bus = "<system version='1'><cpu><pci busid='a' class='0x030200' ";
  const std::string files[][2] = {
      {"pairs.txt", "GPU0 GPU1\nGPU0 X NV4\nGPU1 NV4 X\n"},
      {"nics.txt", "GPU0 GPU1 NIC0\nGPU0 X NV18 PIX\nGPU1 NV18 X PIX\nNIC0 PIX PIX X\n"},
      {"pcie.txt", "GPU0 GPU1\nGPU0 X PHB\nGPU1 PHB X\n"},
      {"amd.txt", "== Link Type between two GPUs ==\nGPU0 GPU1\nGPU0 0 XGMI\nGPU1 XGMI 0\n"},
      {"a100.xml", bus + "vendor='0x10de' device='0x20b2'><gpu dev='0'/></pci></cpu></system>"},
      {"cloud.xml", bus + "/><pci class='0x020700'/></cpu></system>"}};
  for (const auto& [name, text] : files) {
    const std::string file = scratch.write(name, text);
    const std::string cluster = printed_cluster(orrery("show topology " + file).out);
    const Ran ran =
        orrery("simulate --json --model gpt2 --cluster '" + cluster + "' --plan micro_batch=1");
    INFO(cluster << "\n" << ran.error);
    CHECK(ran.exit_code == 0);
    CHECK(orrery("show topology '" + cluster + "'").exit_code == 0);
  }
}

TEST_CASE("The GPU of a node's file is stated with --gpu, and sets the rate of its links") {
  const Scratch scratch;
  const std::string file = scratch.write("t.txt", "GPU0 GPU1\nGPU0 X NV18\nGPU1 NV18 X\n");
  const Ran ran = orrery("show topology " + file + " --gpu b200-sxm");
  CHECK(ran.exit_code == 0);
  CHECK(ran.out.find("gpu0 to gpu1  722 GB/s") != std::string::npos);
  CHECK(printed_cluster(ran.out) ==
        R"({"node":{"like":")" + file + R"(","gpu":"b200-sxm"},"nodes":1})");
  CHECK(refused_line("show topology 'dgx-h100 x 2' --gpu b200-sxm") ==
        "--gpu: is for the file of a node; a cluster states its GPU");
}

TEST_CASE("Text of another kind is refused by what is expected, not as broken JSON") {
  const Scratch scratch;
  const std::string file = scratch.write("query.txt", "==NVSMI LOG==\nAttached GPUs : 8\n");
  CHECK(refused_line("show topology " + file) ==
        file +
            ": is neither a cluster nor a topology; expected a cluster or scenario in JSON, NCCL's "
            "topology XML, or the output of nvidia-smi topo -m or rocm-smi --showtopo");
  const std::string node = scratch.write("n.xml", "<system/>");
  CHECK(refused_line("simulate --model gpt2 --cluster " + node) ==
        node +
            ": is the topology of a node, not a cluster; `orrery show topology` prints the cluster "
            "of it");
  for (const std::string plan : {"#!/bin/bash\ntorchrun train.py\n", "tensor: 8\n", "[job]\n"}) {
    const std::string path = scratch.write("plan.yaml", plan);
    INFO(plan);
    const std::string refused =
        refused_line("simulate --model gpt2 --cluster dgx-h100 --plan " + path);
    CHECK(refused ==
          path +
              ": is not a plan; expected a JSON object such as {\"tensor\": 8, \"pipeline\": 4, "
              "\"global_batch\": 1024, \"seq_len\": 8192}, or --plan tensor=8,pipeline=4,...");
  }
}

}  // namespace
}  // namespace orrery::scenarios
