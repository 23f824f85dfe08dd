// What a campaign on GPUs found, as a profile.
#include <catch2/catch.hpp>

#include "hardware/catalogue.hpp"
#include "tests/calibrate/gpu_campaign.hpp"

namespace orrery::calibrate {

// 1000 GFLOP in 2 ms is 500 TFLOP/s of an H200's 989.
TEST_CASE("A profile of a known GPU is the catalogue's with measured curves and launches") {
  Findings found;
  found.gpu = h200();
  for (std::int64_t m = 512; m <= 8192; m *= 2) {
    const Flops work{2 * m * 4096 * 4096};
    const Time time = from_seconds(static_cast<double>(work.count()) / 500e12) + 5_us;
    found.products[models::DType::bf16].push_back(
        {{m, 4096, 4096}, work, Bytes{2 * (2 * m * 4096 + 4096 * 4096)}, time});
    found.products[models::DType::fp8].push_back(
        {{m, 4096, 4096}, work, Bytes{m * (4096 + 2 * 4096) + 2 * 4096 * 4096}, time});
    found.kernels["norm"].push_back({Bytes{m * 4096 * 4}, Time{m * 20'000} + 2_us});
  }
  const models::ExpertsShape experts{.rows = {2100, 1996}, .k = 4096, .n = 4096};
  found.grouped.push_back(
      {experts_block(experts, models::ExpertsProduct::forward).operations.front(), 1_ms});
  found.overlap_with_communication = OverlapTimes{
      .kernel = 100_us, .other = 50_us, .kernel_overlapped = 107_us, .other_overlapped = 49_us};
  found.launch.forward = 3_us;
  found.launch.graph = 2_us;
  found.launch.communication = 6_us;
  found.launch.communication_ranks = 1;
  for (const CopyPath path : {CopyPath::pinned_to, CopyPath::pinned_from}) {
    found.copies.push_back({path, 1_MB, 20_us});
    found.copies.push_back({path, 4000_B, 2_us});
  }
  for (const Time sustained : {12_us, 10_us, 11_us}) {  // 0.75, 0.9 and 0.82 of bursts' rate
    SustainedLoad load;
    load.what = "gemm";
    load.isolated = 9_us;
    load.sustained = sustained;
    found.loads.push_back(load);
  }
  found.missing = {"collectives: there is one GPU"};
  const Json software{{"name", "orrery-cuda"}, {"host", {{"backward_launch", "4 us"}}}};
  const CalibratedProfile profile = make_profile(found, software);
  const Json& gpu = profile.cluster.at("node").at("gpu");
  CHECK(gpu.at("name") == "h200-sxm-141gb");
  CHECK(gpu.at("measured").at("gemm").at("bf16").size() == 5);
  CHECK(gpu.at("measured").at("grouped_gemm").at("bf16").at(0).at(0) == 2048);  // the mean's rows
  // 275 us at 500 TFLOP/s and 5 us to begin: 1 ms is 3.57 times that.
  CHECK(gpu.at("notes").get<std::string>().find("bf16 grouped GEMMs with even rows take 3.5") !=
        std::string::npos);
  CHECK(gpu.at("measured").at("gemm").at("fp8").size() == 5);
  CHECK_THAT(gpu.at("sources").at("/gemm/fp8").get<std::string>(),
             Catch::Matchers::EndsWith(
                 "; includes quantising weights and transposing operands in each GEMM"));
  CHECK(gpu.at("sustained_share").get<double>() == Approx(9.0 / 11).epsilon(1e-3));
  CHECK(gpu.at("sources").at("/gemm/bf16").get<std::string>().find("NVIDIA H200; CUDA 13.0") !=
        std::string::npos);
  CHECK(gpu.at("notes").get<std::string>().find("unknown") != std::string::npos);
  CHECK(profile.cluster.at("software").at("host").at("forward_launch") == "3000 ns");
  const Json& stack = profile.cluster.at("software");
  CHECK(stack.at("host").at("backward_launch") == "4 us");
  CHECK(stack.at("host").at("graph_launch") == "2000 ns");
  CHECK(stack.at("host").at("communication_launch") == "6000 ns");
  CHECK(stack.at("source").get<std::string>().find(
            "; communication_launch measured with a communicator of one rank, a lower bound") !=
        std::string::npos);
  const Json points =
      Json::array({Json::array({"4000 B", "2000 ns"}), Json::array({"1000000 B", "20000 ns"})});
  CHECK(gpu.at("measured").at("host_link") == Json{{"to_device", points}, {"from_device", points}});
  // Quicker next to the other than alone is noise.
  CHECK(gpu.at("measured").at("beside_communication") ==
        Json{{"compute", 1.07}, {"communication", 1.0}});
  CHECK(gpu.at("host_link") == "63 GB/s");  // the datasheet's, of which the cost models take shares
  CHECK(profile.cluster.at("notes") == "not measured: collectives: there is one GPU.");

  Json cluster = profile.cluster;
  cluster.erase("software");  // of two members only
  const Document document = Document::from(cluster, "profile");
  const Document whole = Document::from(hardware::expand_cluster(document.root()), "profile");
  const hardware::Cluster read = hardware::read_cluster(whole.root());
  CHECK(read.node.gpus == 1);
  CHECK(read.gpu().calibration.kernel("norm") != nullptr);
  CHECK(read.gpu().calibration.host_link.value().from_device.at(1_MB) == 20_us);
  CHECK(read.gpu().gemm.at(models::DType::bf16).origin.fallback_from.empty());
  CHECK(read.gpu().gemm.at(models::DType::fp8).origin.fallback_from.empty());
}

TEST_CASE("A profile names the attention that ran") {
  Findings found;
  found.machine.date = "2026-11-22";
  found.machine.processor = "a processor";
  found.machine.system = "a system";
  found.gpu = h200();
  found.products[models::DType::bf16].push_back(
      {{64, 64, 64}, Flops{2'000'000'000}, Bytes{1 << 20}, 10_us});
  hardware::AttentionCall call;
  call.work = Flops{4LL * 1024 * 1024 * 16 * 64};
  call.seq = 1024;
  call.head_dim = 64;
  found.attention.push_back({call, 10_us});
  const auto named = [&](const executor::FusedAttention& fused) {
    found.fused = fused;
    const CalibratedProfile profile = make_profile(found, Json{{"name", "orrery-cuda"}});
    const std::string name =
        profile.cluster.at(Json::json_pointer{"/software/kernels/attention/default"});
    const Json& gpu = profile.cluster.at("node").at("gpu");
    CHECK(gpu.at("attention").contains(name));
    return name + ": " + gpu.at("sources").at("/attention/" + name).get<std::string>();
  };
  const std::string measured =
      "calibrated 2026-11-22 on NVIDIA H200; CUDA 13.0; a processor; a system; ";
  CHECK(named({"cuDNN 9.19.0", 15, 0}) == "cudnn: " + measured + "cuDNN 9.19.0");
  CHECK(named({"cuDNN 9.19.0", 12, 3}) ==
        "orrery: " + measured +
            "cuDNN 9.19.0 in 12 of 15 shapes, the executor's own kernels in the others");
  CHECK(named({"cuDNN 9.19.0", 0, 3}) == "orrery: " + measured + "the executor's own kernels");
  CHECK(named({"", 0, 3}) == "orrery: " + measured + "the executor's own kernels");
}

TEST_CASE("A GPU that the catalogue lacks has what was measured as its peaks") {
  Findings found;
  found.gpu =
      GpuIdentity{.name = "NVIDIA Toy 1", .memory = 8_GiB, .capability = 89, .versions = ""};
  found.products[models::DType::fp16].push_back(
      {{64, 64, 64}, Flops{2'000'000'000}, Bytes{1 << 20}, 10_us});  // 200 TFLOP/s
  found.copies.push_back({CopyPath::on_device, 1_MB, 4_us});         // 2 MB of traffic: 500 GB/s
  found.copies.push_back({CopyPath::pinned_to, 1_MB, 20_us});
  found.copies.push_back({CopyPath::pinned_from, 1_MB, 40_us});  // 25 GB/s, the slower way
  const CalibratedProfile profile = make_profile(found, Json::object());
  const Json& gpu = profile.cluster.at("node").at("gpu");
  CHECK(gpu.at("name") == "nvidia-toy-1");
  CHECK(gpu.at("generation") == "ada");
  CHECK(gpu.at("dense_peak").at("fp16") == "200 TFLOP/s");
  CHECK(gpu.at("memory_bandwidth") == "500 GB/s");
  CHECK(gpu.at("host_link") == "25 GB/s");
}

}  // namespace orrery::calibrate
