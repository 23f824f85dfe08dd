#include "scenarios/command/calibrate_gpu.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>

#include "calibrate/gpu/gpu_campaign.hpp"
#include "executor/errors.hpp"
#include "executor/launch/private_folder.hpp"
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
        server_{executor::unused_socket(), identity_},
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
  const auto known = [](const std::optional<Time>& time) {
    return time ? format(*time) : std::string{"unknown"};
  };
  fmt::print("  host, one launch: forward {}, backward {}, a small kernel {}\n",
             known(launch.forward), known(launch.backward), known(launch.small));
  if (launch.graph) {
    fmt::print(
        "  host, a small layer as one CUDA graph: {}, on the queue a kernel of it every {}\n",
        format(*launch.graph), known(launch.graph_kernel));
  }
  if (launch.communication) {
    fmt::print("  host, one collective of {} rank{}: {}\n", launch.communication_ranks,
               launch.communication_ranks > 1 ? "s" : "", format(*launch.communication));
  }
  fmt::print("  queue: a small kernel every {}, a mark {}\n", known(launch.small_on_queue),
             format(launch.mark));
  fmt::print("  {}\n", profile.cluster.at("node").at("gpu").at("notes").get<std::string>());
  for (const std::string& each : found.missing) fmt::print("  not measured: {}\n", each);
  for (const calibrate::Load& each : found.loads) {
    fmt::print("  {}: {} in bursts, {} for seconds\n", each.what, format(each.isolated),
               format(each.sustained));
  }
  fmt::print("  points set up in {}, which is none of the budget\n", format(found.setting_up));
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
                          {"setting_up_s", seconds(found.setting_up)},
                          {"discarded_runs", found.discarded_runs},
                          {"discarded_points", found.discarded_points},
                          {"points_left_out", found.points_left_out}}
                         .dump(2));
}

/// The profile and all samples, by what is known so far.
calibrate::Profile write_gpu_profile(const std::string& path, const calibrate::GpuFindings& found,
                                     const Json& stack) {
  calibrate::Profile profile = make_profile(found, stack);
  write_json(path, profile.cluster);
  write_json(samples_path(path), {{"machine", to_json(found.machine)},
                                  {"gpu", found.gpu.name},
                                  {"versions", found.gpu.versions},
                                  {"measurements", found.raw},
                                  {"chosen", found.notes},
                                  {"failures", found.failures}});
  return profile;
}

/// What a campaign measures on this machine's GPUs; the module and the blocks outlive it.
calibrate::GpuCampaignInputs campaign_inputs(const executor::CudaModule& module,
                                             const GpuCalibration& wishes,
                                             const calibrate::GpuIdentity& gpu,
                                             const GpuBlocks& blocks) {
  const bool trial = wishes.widest < small_models;
  calibrate::GpuCampaignInputs inputs;
  inputs.gpu = gpu;
  inputs.blocks = blocks.blocks;
  inputs.operations = blocks.operations;
  inputs.launches = blocks.launches;
  inputs.loads = blocks.loads;
  inputs.copies = sizes_between(4_KiB, trial ? 1_MiB : 512_MiB, 8);
  inputs.messages = sizes_between(1_KiB, trial ? 64_KiB : 256_MiB, 4);
  inputs.most_memory = Bytes{gpu.memory.count() / 5};
  inputs.device = [&module] { return module.make_device(0); };
  inputs.why_no_collectives = why_no_collectives(module, gpu.count);
  inputs.telemetry = calibrate::nvml_telemetry(module.gpus().front().unique);
  inputs.notes = [&module](const executor::Device& device) { return module.notes(device); };
  inputs.fused = [&module](const executor::Device& device) { return module.attention(device); };
  inputs.rules.budget = wishes.budget;
  inputs.rules.point = 250_ms;
  inputs.sizes = bench_sizes(wishes.widest);
  inputs.seed = wishes.seed;
  return inputs;
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
  const calibrate::GpuIdentity gpu = identity_of(module);
  const GpuBlocks blocks =
      gpu_blocks(models::read_software(stack.root()), generation_of(gpu), wishes.widest);
  calibrate::GpuCampaignInputs inputs = campaign_inputs(module, wishes, gpu, blocks);
  std::optional<Meeting> meeting;
  const calibrate::GpuCrew::Make join = [&](int rank, int ranks) {
    return meeting->join(module, rank, ranks);
  };
  if (module.has_nccl()) {
    meeting.emplace(gpu.count);
    (gpu.count > 1 ? inputs.rank : inputs.lone_rank) = join;
  }
  const Watch watch;
  inputs.watcher = watched_progress("points");
  SampleLines lines{wishes.out};
  inputs.sample = [&](const Json& sample) { lines.add(sample); };
  inputs.part_done = [&](const calibrate::GpuFindings& so_far) {
    if (wishes.out && !so_far.products.empty()) {
      write_gpu_profile(*wishes.out, so_far, profile_of_stack);
    }
  };
  const auto host = calibrate::machine_clock();
  const auto clock = calibrate::gpu_clock(*host);
  const calibrate::GpuFindings found = run_gpu_campaign(std::move(inputs), *clock);
  for (const std::string& each : found.failures) {
    fmt::print(stderr, "left out: {}\n", printable(each));
  }
  if (found.products.empty()) {
    fmt::print(
        stderr,
        "no product was measured, so there is no profile: {} points failed, {} were discarded "
        "as the GPU was throttled, {} left out by the budget; try a longer --budget\n",
        found.failures.size(), found.discarded_points, found.points_left_out);
    return Watch::interrupted() ? Watch::exit_code()
                                : static_cast<int>(executor::Exit::local_failure);
  }
  const calibrate::Profile profile = wishes.out
                                         ? write_gpu_profile(*wishes.out, found, profile_of_stack)
                                         : make_profile(found, profile_of_stack);
  lines.remove();
  if (wishes.json) {
    print_gpu_json(wishes, found, profile);
  } else {
    print_gpu_findings(found, profile);
  }
  return Watch::exit_code();
}

}  // namespace orrery::scenarios
