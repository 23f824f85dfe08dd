#include "calibrate/calibrate.hpp"

#include <fmt/format.h>

#include "calibrate/campaign.hpp"
#include "calibrate/local_rendezvous.hpp"
#include "calibrate/output.hpp"
#include "executor/module/gpu_vendors.hpp"
#include "hardware/catalogue.hpp"
#include "hardware/cluster/recognise.hpp"
#include "models/data/data_lane.hpp"
#include "models/software/software.hpp"
#include "sim/errors.hpp"
#include "sim/input/text.hpp"
#include "sim/input/units.hpp"

namespace orrery::calibrate {

namespace {

constexpr std::int64_t small_models = 1024;  // below: a trial with small sizes
constexpr std::int64_t narrowest = 128;

GpuIdentity identity_of(const executor::GpuModule& module) {
  const std::vector<executor::VisibleGpu> gpus = module.gpus();
  const executor::VisibleGpu& first = gpus.front();
  return {.name = first.name,
          .memory = first.memory,
          .capability = first.capability,
          .count = static_cast<int>(gpus.size()),
          .versions = module.versions()};
}

std::string generation_name_of(const GpuIdentity& gpu) {
  const auto known = hardware::recognised_gpu(gpu.name, gpu.memory);
  return known ? hardware::named_gpu(*known).generation.name : "other";
}

std::vector<Bytes> sizes_between(Bytes least, Bytes most, std::int64_t factor) {
  std::vector<Bytes> sizes;
  for (Bytes size = least; size <= most; size = size * factor) sizes.push_back(size);
  return sizes;
}

std::string why_no_collectives(const executor::Backend& backend, int gpus) {
  if (gpus < 2) return "there is one GPU; compute was measured during a copy of memory instead";
  if (!backend.module().has_collectives()) {
    return fmt::format("this orrery was built without {}", backend.vendor().fabric_title);
  }
  return {};
}

/// A processor is timed by its own clock and without repeats: it has no queue that must be kept
/// busy.
CampaignInputs processor_inputs(const CalibrateRequest& request, LocalRendezvous& rendezvous) {
  CampaignInputs inputs;
  inputs.copies = {64_MiB};
  inputs.messages = sizes_between(256_B, 16_MiB, 4);
  inputs.folder = std::filesystem::path{request.out.value_or("")}.parent_path();
  if (inputs.folder.empty()) inputs.folder = ".";
  inputs.alone = inputs.rank = rendezvous.cores(request.fabric);
  for (const int ranks : request.ranks) {
    if (ranks > 1) inputs.sets.push_back(ranks);
  }
  inputs.sizes = {.most_repeats = 1, .marks = 1000};
  inputs.shares.points = 0.5;
  inputs.shares.copies = 0.05;
  return inputs;
}

/// A GPU's clocks show whether it is disturbed; the pace of its host does not.
CampaignInputs gpu_inputs(const CalibrateRequest& request, const executor::Backend& backend,
                          LocalRendezvous& rendezvous) {
  const executor::GpuModule& module = backend.module();
  const bool trial = request.widest < small_models;
  CampaignInputs inputs;
  inputs.gpu = identity_of(module);
  const int gpus = inputs.gpu->count;
  inputs.copies = sizes_between(4_KiB, trial ? 1_MiB : 512_MiB, 8);
  inputs.host_copies = inputs.copies;
  inputs.messages = sizes_between(1_KiB, trial ? 64_KiB : 256_MiB, 4);
  inputs.most_memory = Bytes{inputs.gpu->memory.count() / 5};
  inputs.alone = [&module](int, int) { return RankParts{.device = module.make_device(0)}; };
  inputs.why_no_collectives = why_no_collectives(backend, gpus);
  if (module.has_collectives()) {
    inputs.rank = rendezvous.gpus(module);
    inputs.sets = {gpus};
  }
  inputs.telemetry = nvml_telemetry(module.gpus().front().unique);
  inputs.notes = [&module](const executor::Device& device) { return module.notes(device); };
  inputs.fused = [&module](const executor::Device& device) { return module.attention(device); };
  inputs.rules.point = 250_ms;
  inputs.rules.goes_on = true;
  inputs.rules.watches_host = false;
  inputs.disturbed = Disturbed::discarded;
  inputs.shares.points = gpus > 1 && module.has_collectives() ? 0.4 : 0.75;
  if (trial) {
    inputs.sizes = {.busy_copy = 1_MiB,
                    .uncached = 1_MiB,
                    .interval = 100_us,
                    .most_busy_copies = 2,
                    .marks = 10};
  }
  return inputs;
}

void check(const CalibrateRequest& request) {
  if (executor::backend_of(request.backend).has_gpus() && request.widest < narrowest) {
    throw InputError{"--widest",
                     fmt::format("expected {} or more, found {}", narrowest, request.widest)};
  }
  for (const int each : request.ranks) {
    if (each < 1 || each > 64) {
      throw InputError{"--ranks", fmt::format("expected counts from 1 to 64, found {}", each)};
    }
  }
  std::error_code ignored;
  if (request.storage && !std::filesystem::is_directory(*request.storage, ignored)) {
    throw InputError{"--storage",
                     fmt::format("expected a folder, found '{}'", printable(*request.storage, 60))};
  }
  if (request.cluster && !request.storage) {
    throw InputError{
        "--cluster",
        "is for --import, whose logs were measured on it, or for --storage, the folder "
        "whose rates it gets"};
  }
  if (request.budget < 1_s) {
    throw InputError{"--budget", fmt::format("expected a time of 1 s or more, found {}",
                                             orrery::format(request.budget))};
  }
}

/// Puts the request's budget and work into the inputs; the list owns what they point to.
WorkList work_of(const CalibrateRequest& request, CampaignInputs& inputs, const Document& stack) {
  WorkQuestion question{.target = inputs.gpu ? Target::gpu : Target::processor,
                        .widest = request.widest};
  if (inputs.gpu) {
    question.generation = generation_name_of(*inputs.gpu);
    question.plans = request.plans;
  }
  WorkList work = work_list(models::read_software(stack.root()), question);
  inputs.points = work.points;
  inputs.launches = work.launches;
  inputs.loads = work.loads;
  inputs.rules.budget = request.budget;
  inputs.seed = request.seed;
  return work;
}

/// The formats of pictures that no codec decodes, in one sentence.
std::vector<std::string> not_decoded(const CampaignInputs& inputs, const std::string& absence) {
  if (inputs.folder.empty()) return {"storage and decoding: state a folder with --storage"};
  std::string names;
  for (const models::DataFormat& each : models::data_formats()) {
    const bool known = std::ranges::any_of(
        inputs.codecs, [&](const auto& codec) { return codec->format() == each.name; });
    if (each.kind != "image" || each.per_core <= 0 || known) continue;
    names += (names.empty() ? "" : ", ") + each.name;
  }
  if (names.empty()) return {};
  return {fmt::format("decoding of {}: {}", names,
                      absence.empty() ? "this orrery was built without its library" : absence)};
}

Json samples_json(const Findings& found) {
  Json json{{"machine", to_json(found.machine)}, {"measurements", found.raw}};
  if (!found.gpu) return json;
  json["gpu"] = found.gpu->name;
  json["versions"] = found.gpu->versions;
  json["chosen"] = found.notes;
  json["failures"] = found.failures;
  return json;
}

/// The profile of the findings so far, written to `out` if given; nothing without a measured GEMM.
std::optional<CalibratedProfile> written_profile(const Findings& found, const Json& stack,
                                                 const std::optional<std::string>& out) {
  if (!found.has_products()) return std::nullopt;
  CalibratedProfile profile = make_profile(found, stack);
  if (out) {
    write_json(*out, profile.cluster);
    write_json(samples_path(*out), samples_json(found));
  }
  return profile;
}

/// The request's cluster with the storage and decoding that were measured, written to `out`;
/// nothing without a measured storage.
std::optional<CalibratedProfile> written_files_profile(const Findings& found,
                                                       const CalibrateRequest& request) {
  if (!found.storage.read) return std::nullopt;
  CalibratedProfile profile{.cluster = with_measured_files(*request.cluster, found), .curves = {}};
  if (request.out) {
    write_json(*request.out, profile.cluster);
    write_json(samples_path(*request.out), samples_json(found));
  }
  return profile;
}

/// Adds the decoders, and tries the files that will be written before anything is measured. Returns
/// the formats that nothing here decodes.
std::vector<std::string> prepare(const CalibrateRequest& request, CampaignInputs& inputs) {
  ImageCodecs codecs = image_codecs();
  inputs.codecs = std::move(codecs.codecs);
  if (request.out) {
    require_writable(*request.out);
    require_writable(samples_path(*request.out));
  }
  return not_decoded(inputs, codecs.absence);
}

/// What a folder's storage and a core's decoders do, in seconds.
CalibrateAnswer calibrate_files(const CalibrateRequest& request, const Watcher& progress) {
  CampaignInputs inputs;
  inputs.folder = *request.storage;
  inputs.files_first = true;
  inputs.shares.storage = inputs.shares.decoding = 0.5;
  inputs.rules.budget = request.budget;
  inputs.seed = request.seed;
  const std::vector<std::string> unknown = prepare(request, inputs);
  CalibrateAnswer answer;
  inputs.watcher = [&](std::size_t done, std::size_t all) {
    if (progress && !progress(done, all)) answer.stopped = true;
    return !answer.stopped;
  };
  const auto clock = machine_clock();
  answer.findings = run_files_campaign(std::move(inputs), *clock);
  answer.findings.missing.insert(answer.findings.missing.end(), unknown.begin(), unknown.end());
  answer.profile = written_files_profile(answer.findings, request);
  return answer;
}

}  // namespace

CalibrateAnswer calibrate(const CalibrateRequest& request, const Watcher& progress) {
  check(request);
  if (request.cluster) return calibrate_files(request, progress);
  const executor::Backend backend = executor::backend_of(request.backend);
  LocalRendezvous rendezvous;
  CampaignInputs inputs = backend.has_gpus() ? gpu_inputs(request, backend, rendezvous)
                                             : processor_inputs(request, rendezvous);
  if (request.storage) {
    inputs.folder = *request.storage;
    inputs.files_first = true;
  }
  const std::vector<std::string> unknown = prepare(request, inputs);
  const std::string name{backend.profile()};
  const Json stack = models::software_profile(name);
  const WorkList work = work_of(request, inputs, Document::from(stack, name));
  CalibrateAnswer answer;
  inputs.watcher = [&](std::size_t done, std::size_t all) {
    if (progress && !progress(done, all)) answer.stopped = true;
    return !answer.stopped;
  };
  SampleLines lines{request.out};
  inputs.sample = [&](const Json& sample) { lines.add(sample); };
  if (request.out) {
    inputs.part_done = [&](const Findings& so_far) { written_profile(so_far, stack, request.out); };
  }
  const auto clock = machine_clock();
  answer.findings = run_campaign(std::move(inputs), *clock);
  answer.findings.missing.insert(answer.findings.missing.end(), unknown.begin(), unknown.end());
  answer.profile = written_profile(answer.findings, stack, request.out);
  if (answer.profile) lines.remove();
  return answer;
}

}  // namespace orrery::calibrate
