#include "scenarios/command/calibrate_gpu.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>

#include "calibrate/gpu/gpu_campaign.hpp"
#include "executor/errors.hpp"
#include "executor/launch/store.hpp"
#include "hardware/catalogue.hpp"
#include "hardware/recognise.hpp"
#include "scenarios/command/calibrate_gpu_blocks.hpp"
#include "scenarios/command/calibrate_output.hpp"
#include "scenarios/command/commands.hpp"
#include "scenarios/command/execute_backend.hpp"
#include "scenarios/command/progress.hpp"
#include "sim/input/text.hpp"
#include "sim/input/units.hpp"

namespace orrery::scenarios {

namespace {

constexpr std::chrono::milliseconds patience{60'000};
constexpr std::int64_t small_models = 1024;  // narrower ones alone: a trial, on whatever there is

calibrate::GpuIdentity identity_of(const executor::CudaModule& module) {
  const std::vector<executor::VisibleGpu> gpus = module.gpus();
  const executor::VisibleGpu& first = gpus.front();
  return {.name = first.name,
          .memory = first.memory,
          .capability = first.capability,
          .count = static_cast<int>(gpus.size()),
          .versions = module.versions()};
}

hardware::Generation generation_of(const calibrate::GpuIdentity& gpu) {
  const auto known = hardware::recognised_gpu(gpu.name, gpu.memory);
  return known ? hardware::named_gpu(*known).generation : hardware::Generation::other;
}

/// A factor of 8 from one size to the next.
std::vector<Bytes> sizes_between(Bytes least, Bytes most, std::int64_t factor) {
  std::vector<Bytes> sizes;
  for (Bytes size = least; size <= most; size = size * factor) sizes.push_back(size);
  return sizes;
}

/// Where the ranks of a crew meet; outlives their fabrics.
class Meeting {
 public:
  explicit Meeting(int ranks)
      : identity_{.job = fmt::format("calibrate-{}", ::getpid()), .ranks = ranks},
        server_{executor::Address{.host = "127.0.0.1", .port = 0}, identity_},
        stores_(static_cast<std::size_t>(ranks)) {}

  calibrate::GpuRank join(const executor::CudaModule& module, int rank, int ranks) {
    auto& store = stores_[static_cast<std::size_t>(rank)];
    store = std::make_unique<executor::Store>(server_.address(), identity_, rank, patience);
    calibrate::GpuRank made;
    made.device = module.make_device(rank);
    made.fabric = module.make_nccl_fabric(*made.device, *store, rank, ranks, patience);
    return made;
  }

 private:
  executor::StoreIdentity identity_;
  executor::StoreServer server_;
  std::vector<std::unique_ptr<executor::Store>> stores_;
};

calibrate::BenchSizes bench_sizes(std::int64_t widest) {
  if (widest >= small_models) return {};
  return {.run_up = 1_MiB, .cold = 1_MiB, .interval = 100_us, .most_run_ups = 2, .marks = 10};
}

std::string why_no_collectives(const executor::CudaModule& module, int gpus) {
  if (gpus < 2) return "there is one GPU; compute was measured beside a copy of memory instead";
  if (!module.has_nccl()) return "this orrery was built without NCCL";
  return {};
}

void print_gpu_findings(const calibrate::GpuFindings& found, const calibrate::Profile& profile) {
  fmt::print("{} x {}, {}\n", found.gpu.count, printable(found.gpu.name),
             printable(found.gpu.versions));
  print_curves(profile.curves);
  const calibrate::LaunchCosts& launch = found.launch;
  const auto told = [](const std::optional<Time>& time) {
    return time ? format(*time) : std::string{"unknown"};
  };
  fmt::print("  host, one launch: forward {}, backward {}, a small kernel {}\n",
             told(launch.forward), told(launch.backward), told(launch.small));
  if (launch.graph) {
    fmt::print(
        "  host, a small layer as one CUDA graph: {}, on the queue a kernel of it every {}\n",
        format(*launch.graph), told(launch.graph_kernel));
  }
  if (launch.communication) {
    fmt::print("  host, one collective of {} rank{}: {}\n", launch.communication_ranks,
               launch.communication_ranks > 1 ? "s" : "", format(*launch.communication));
  }
  fmt::print("  queue: a small kernel every {}, a mark {}\n", told(launch.small_on_queue),
             format(launch.mark));
  fmt::print("  {}\n", profile.cluster.at("node").at("gpu").at("notes").get<std::string>());
  for (const std::string& each : found.missing) fmt::print("  not measured: {}\n", each);
  for (const std::string& each : found.failures) fmt::print("  failed: {}\n", printable(each));
  if (found.discarded_runs + found.discarded_points + found.points_left_out > 0) {
    fmt::print(
        "  {} runs and {} points of a throttled GPU discarded, {} points left out by the "
        "budget\n",
        found.discarded_runs, found.discarded_points, found.points_left_out);
  }
}

void print_gpu_json(const GpuCalibration& wishes, const calibrate::GpuFindings& found,
                    const calibrate::Profile& profile) {
  fmt::print("{}\n", Json{{"profile", wishes.out ? Json(*wishes.out) : Json{}},
                          {"gpu", found.gpu.name},
                          {"gpus", found.gpu.count},
                          {"versions", found.gpu.versions},
                          {"samples", medians(found.raw)},
                          {"curves", curves_json(profile.curves)},
                          {"machine", to_json(found.machine)},
                          {"missing", found.missing},
                          {"failures", found.failures},
                          {"discarded_runs", found.discarded_runs},
                          {"discarded_points", found.discarded_points},
                          {"points_left_out", found.points_left_out}}
                         .dump(2));
}

}  // namespace

int calibrate_gpus(const GpuCalibration& wishes) {
  const executor::CudaModule& module = cuda_module();
  if (wishes.out) {
    require_writable(*wishes.out);
    require_writable(samples_path(*wishes.out));
  }
  const Json profile_of_stack = models::software_profile("orrery-cuda");
  const Document stack = Document::from(profile_of_stack, "orrery-cuda");
  calibrate::GpuCampaignInputs inputs;
  inputs.gpu = identity_of(module);
  const GpuBlocks blocks =
      gpu_blocks(models::read_software(stack.root()), generation_of(inputs.gpu), wishes.widest);
  const bool trial = wishes.widest < small_models;
  inputs.blocks = blocks.blocks;
  inputs.operations = blocks.operations;
  inputs.launches = blocks.launches;
  inputs.load = blocks.load;
  inputs.copies = sizes_between(4_KiB, trial ? 1_MiB : 512_MiB, 8);
  inputs.messages = sizes_between(1_KiB, trial ? 64_KiB : 256_MiB, 4);
  inputs.most_memory = Bytes{inputs.gpu.memory.count() / 5};
  inputs.device = [&module] { return module.make_device(0); };
  inputs.why_no_collectives = why_no_collectives(module, inputs.gpu.count);
  std::optional<Meeting> meeting;
  const calibrate::GpuCrew::Make join = [&](int rank, int ranks) {
    return meeting->join(module, rank, ranks);
  };
  if (module.has_nccl()) {
    meeting.emplace(inputs.gpu.count);
    (inputs.gpu.count > 1 ? inputs.rank : inputs.lone_rank) = join;
  }
  inputs.telemetry = calibrate::nvml_telemetry(module.gpus().front().unique);
  inputs.notes = [&module](const executor::Device& device) { return module.notes(device); };
  inputs.fused = [&module](const executor::Device& device) { return module.attention(device); };
  inputs.rules.budget = wishes.budget;
  inputs.rules.point = 250_ms;
  inputs.sizes = bench_sizes(wishes.widest);
  inputs.seed = wishes.seed;
  const Watch watch;
  inputs.watcher = watched_progress("points");
  const auto host = calibrate::machine_clock();
  const auto clock = calibrate::gpu_clock(*host);
  const calibrate::GpuFindings found = run_gpu_campaign(std::move(inputs), *clock);
  if (found.products.empty()) {
    for (const std::string& each : found.failures) {
      fmt::print(stderr, "failed: {}\n", printable(each));
    }
    return Watch::interrupted() ? exit_interrupted
                                : static_cast<int>(executor::Exit::local_failure);
  }
  const calibrate::Profile profile = make_profile(found, profile_of_stack);
  if (wishes.out) {
    write_json(*wishes.out, profile.cluster);
    write_json(samples_path(*wishes.out), {{"machine", to_json(found.machine)},
                                           {"gpu", found.gpu.name},
                                           {"versions", found.gpu.versions},
                                           {"measurements", found.raw},
                                           {"chosen", found.notes},
                                           {"failures", found.failures}});
  }
  if (wishes.json) {
    print_gpu_json(wishes, found, profile);
  } else {
    print_gpu_findings(found, profile);
  }
  if (!found.failures.empty()) return static_cast<int>(executor::Exit::local_failure);
  return Watch::interrupted() ? exit_interrupted : exit_done;
}

}  // namespace orrery::scenarios
