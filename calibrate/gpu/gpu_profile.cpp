#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "calibrate/gpu/gpu_file.hpp"
#include "calibrate/spelled.hpp"
#include "hardware/catalogue.hpp"
#include "hardware/recognise.hpp"
#include "sim/errors.hpp"

namespace orrery::calibrate {

namespace {

/// Read and written, of the largest copies.
Bandwidth copy_rate(const GpuFindings& findings) {
  double best = 0;
  for (const CopyPoint& each : findings.copies) {
    if (each.way != "on the device") continue;
    best = std::max(best, 2 * static_cast<double>(each.size.count()) / seconds(each.time));
  }
  return Bandwidth{best > 0 ? best : 1e9};
}

std::string plain_name(const std::string& reported) {
  std::string name;
  for (const char letter : reported) {
    const auto c = static_cast<unsigned char>(letter);
    if (std::isalnum(c) != 0) name += static_cast<char>(std::tolower(c));
    if (std::isalnum(c) == 0 && !name.empty() && name.back() != '-') name += '-';
  }
  return name.empty() ? "gpu" : name;
}

/// By compute capability: 8.0 and 8.6 are Ampere, 8.9 Ada, 9.0 Hopper, 10 and 12 Blackwell.
/// Source  NVIDIA, "CUDA GPU compute capability"
const char* generation_of(int capability) {
  if (capability >= 100) return "blackwell";
  if (capability >= 90) return "hopper";
  return capability >= 89 ? "ada" : "ampere";
}

/// What a GPU that the catalogue lacks is known by: what was measured.
Json stranger(const GpuFindings& findings) {
  Json gpu{{"name", plain_name(findings.gpu.name)},
           {"vendor", "NVIDIA"},
           {"generation", generation_of(findings.gpu.capability)},
           {"memory", spelled(findings.gpu.memory)},
           {"memory_bandwidth", spelled(copy_rate(findings))}};
  for (const auto& [format, points] : findings.products) {
    gpu["dense_peak"][std::string{hardware::name(format)}] = spelled(fastest(points));
  }
  gpu["sources"][""] = gpu_source(findings) + "; peaks are the fastest product and copy measured";
  return gpu;
}

/// How the GPUs of this machine reach each other: as in the catalogue's node, else over PCIe.
Json scale_up_of(const GpuFindings& findings, const std::optional<std::string>& known) {
  if (findings.gpu.count == 1) return {{"name", "none"}, {"kind", "none"}};
  const auto node = known ? hardware::node_with(*known) : std::nullopt;
  return hardware::Catalogue::node(node.value_or("l40s-8x")).at("scale_up");
}

/// The stack's profile with this machine's launches, and the curve of the attention that ran.
Json measured_stack(Json software, const GpuFindings& findings, const std::string& source) {
  software["source"] = source;
  const LaunchCosts& costs = findings.launch;
  if (costs.forward) software["host"]["forward_launch"] = spelled(*costs.forward);
  if (costs.backward) software["host"]["backward_launch"] = spelled(*costs.backward);
  if (costs.graph) software["host"]["graph_launch"] = spelled(*costs.graph);
  if (costs.communication) {
    software["host"]["communication_launch"] = spelled(*costs.communication);
    if (costs.communication_ranks == 1) {
      software["source"] =
          source + "; communication_launch of a communicator of one rank, the least that one costs";
    }
  }
  if (!findings.attention.empty()) {
    software["kernels"]["attention"] = {{"default", attention_name(findings.fused)}};
  }
  return software;
}

}  // namespace

Profile make_profile(const GpuFindings& findings, Json software) {
  ensure(!findings.products.empty(), "a profile needs measured products");
  const auto known = hardware::recognised_gpu(findings.gpu.name, findings.gpu.memory);
  const std::string source = gpu_source(findings);
  Profile profile;
  Json base = known ? hardware::Catalogue::gpu(*known) : stranger(findings);
  Json gpu = measured_gpu(findings, std::move(base), profile.curves);
  for (const auto& table : findings.collectives) {
    profile.curves.push_back({fmt::format("{} {} GPUs", table.operation, table.ranks),
                              table.times.points().size(), interpolation_error_pct(table.times)});
  }
  Json& cluster = profile.cluster;
  cluster["name"] = "calibrated-" + gpu.at("name").get<std::string>();
  cluster["node"] = {{"name", "this-machine"},
                     {"gpu", std::move(gpu)},
                     {"gpus", findings.gpu.count},
                     {"scale_up", scale_up_of(findings, known)},
                     {"nics", 0}};
  cluster["nodes"] = 1;
  cluster["fabric"] = "none";
  if (!findings.collectives.empty()) {
    cluster["measured_collectives"] = to_json(findings.collectives);
  }
  cluster["software"] = measured_stack(std::move(software), findings, source);
  cluster["sources"] = {{"", source}};
  std::string notes = "not measured:";
  for (const std::string& each : findings.missing) notes += " " + each + ".";
  if (!findings.missing.empty()) cluster["notes"] = notes;
  return profile;
}

}  // namespace orrery::calibrate
