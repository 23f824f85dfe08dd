// PyTorch's traces.
#include <catch2/catch.hpp>

#include "calibrate/import/import.hpp"

namespace orrery::calibrate {
namespace {

/// Kernels "k" of 10 us alone and 15 us under an all-reduce that runs from 100 to 200 us.
std::string overlapped_trace() {
  std::string events =
      R"({"ph":"X","cat":"cpu_op","name":"aten::mm","ts":0,"dur":900},)"
      R"({"ph":"X","cat":"kernel","name":"ncclDevKernel_AllReduce","ts":100,"dur":100,)"
      R"("args":{"device":0,"Collective name":"allreduce","Group size":8,"dtype":"Float",)"
      R"("In msg nelems":1024,"Out msg nelems":1024}})";
  for (const int begin : {0, 20, 40, 300}) {
    events += R"(,{"ph":"X","cat":"kernel","name":"k","ts":)" + std::to_string(begin) +
              R"(,"dur":10,"args":{"device":0,"grid":[1,1,1],"block":[64,1,1]}})";
  }
  for (const int begin : {110, 130, 150}) {
    events += R"(,{"ph":"X","cat":"kernel","name":"k","ts":)" + std::to_string(begin) +
              R"(,"dur":15,"args":{"device":0,"grid":[1,1,1],"block":[64,1,1]}})";
  }
  // Half under it: neither alone nor covered.
  events += R"(,{"ph":"X","cat":"kernel","name":"k","ts":195,"dur":12,)"
            R"("args":{"device":0,"grid":[1,1,1],"block":[64,1,1]}})";
  return R"({"schemaVersion":1,"deviceProperties":[{"name":"NVIDIA H100"}],)"
         R"("distributedInfo":{"rank":0,"world_size":8,"nccl_version":"2.27.5"},"traceEvents":[)" +
         events + "]}";
}

TEST_CASE("A trace gives kernels, collectives and how much one slows the other") {
  const Imported log = import_text(overlapped_trace(), "t.json");
  REQUIRE(log.samples.size() == 3);
  const Sample& collective = log.samples[0];
  CHECK(collective.quantity == "all_reduce");
  CHECK(collective.size == 4096_B);
  CHECK(collective.ranks == 8);
  CHECK(std::get<Time>(collective.value) == 100_us);
  CHECK(collective.software == "PyTorch profiler, NCCL 2.27.5");
  CHECK(log.samples[1].quantity == "kernel");
  CHECK(log.samples[1].detail == "k [1,1,1][64,1,1]");
  CHECK(std::get<Time>(log.samples[1].value) == 10_us);
  CHECK(log.samples[1].count == 8);
  CHECK(log.samples[2].quantity == "overlap_slowdown");
  CHECK(std::get<double>(log.samples[2].value) == 1.5);
  CHECK(log.samples[2].count == 3);
  CHECK(log.facts["kernels"] == 9);
  CHECK(log.facts["kernel_us"] == 197.0);  // 100 + 4 * 10 + 3 * 15 + 12
  CHECK(log.facts["nccl_kernels_with_collective_name"] == 1);
}

TEST_CASE("A trace's kernels name their collective where its events do not") {
  const auto kernel = [](const std::string& name, int begin) {
    return R"({"ph":"X","cat":"kernel","name":")" + name + R"(","ts":)" + std::to_string(begin) +
           R"(,"dur":10,"args":{"device":0}})";
  };
  const Imported log = import_text(
      R"({"traceEvents":[)" + kernel("ncclKernel_AllReduce_RING_LL_Sum_float(ncclWorkElem)", 0) +
          "," + kernel("ncclDevKernel_AllGather_TREE_SIMPLE", 20) + "," +
          kernel("ncclDevKernel_Generic", 40) + "," +
          kernel("ncclReduceScatterRingLL128Kernel_sum_f32(ncclColl)", 60) + "]}",
      "t.json");
  REQUIRE(log.samples.size() == 4);
  CHECK(log.samples[0].quantity == "all_reduce");
  CHECK_FALSE(log.samples[0].size);
  CHECK(log.samples[2].quantity == "nccl_kernel");
  CHECK(log.facts["named_by_kernel"].dump() ==
        R"([{"collective":"all_gather","algorithm":"tree","protocol":"simple","count":1},)"
        R"({"collective":"all_reduce","algorithm":"ring","protocol":"ll","count":1},)"
        R"({"collective":"reduce_scatter","algorithm":"ring","protocol":"ll128","count":1}])");
  CHECK(log.notes ==
        std::vector<std::string>{
            "3 of 4 NCCL kernels state their collective, algorithm and protocol in the kernel's "
            "name only: their size and number of ranks are missing",
            "1 of 4 NCCL kernels do not name their collective"});
}

}  // namespace
}  // namespace orrery::calibrate
