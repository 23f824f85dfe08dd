// The entry of a device before fitted curves are added: the catalogue's, or one of measured peaks.

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "calibrate/gpu_entry.hpp"
#include "calibrate/spelled.hpp"
#include "hardware/catalogue.hpp"
#include "hardware/cluster/recognise.hpp"

namespace orrery::calibrate {

namespace {

/// Letters and digits in lower case, joined by hyphens.
std::string hyphenated(const std::string& name) {
  std::string text;
  for (const char letter : name) {
    const auto c = static_cast<unsigned char>(letter);
    if (std::isalnum(c) != 0) text += static_cast<char>(std::tolower(c));
    if (std::isalnum(c) == 0 && !text.empty() && text.back() != '-') text += '-';
  }
  while (!text.empty() && text.back() == '-') text.pop_back();
  return text;
}

/// An entry for a GPU that the catalogue lacks: peaks are the fastest GEMM and copy measured.
Json unknown_gpu(const Findings& findings) {
  Json gpu{{"name", hyphenated(findings.gpu->name)},
           {"vendor", "NVIDIA"},
           {"generation", hardware::generation_of(findings.gpu->capability).name},
           {"memory", spelled(findings.gpu->memory)},
           {"memory_bandwidth", spelled(copy_rate(findings).value_or(1_GBps))}};
  for (const auto& [format, points] : findings.products) {
    gpu["dense_peak"][std::string{hardware::name(format)}] = spelled(fastest(points));
  }
  gpu["sources"][""] = source_line(findings) + "; peaks are the fastest GEMM and copy measured";
  return gpu;
}

/// Memory bandwidth of the fastest kernel.
Bandwidth kernel_rate(const Findings& findings) {
  double best = 1e9;
  for (const auto& kind : findings.kernels) {
    for (const KernelPoint& each : kind.second) {
      best = std::max(best, static_cast<double>(each.traffic.count()) / seconds(each.time));
    }
  }
  return Bandwidth{best};
}

/// An entry for one of the `devices` that share a processor. Narrow formats are computed in fp32
/// and rounded when stored; fp64 vectors hold half as many elements.
Json processor(const Findings& findings, int devices) {
  double best = 0;
  for (const auto* formats : {&findings.products, &findings.batched}) {
    for (const auto& format : *formats) best = std::max(best, fastest(format.second).count());
  }
  const std::string name = hyphenated(findings.machine.processor);
  const std::string copies = spelled(copy_rate(findings).value_or(kernel_rate(findings)));
  Json gpu{{"name", name.empty() ? "cpu" : name},
           {"generation", "cpu"},
           {"memory", spelled(Bytes{findings.machine.memory.count() / devices})},
           {"memory_bandwidth", copies},
           {"host_link", copies},
           {"dense_peak", {{"fp32", spelled(FlopRate{best})}}},
           {"sources", {{"", source_line(findings)}}}};
  gpu["sources"]["/host_link"] =
      "host and device share the machine's memory; this is the rate of copies in it";
  gpu["dense_peak"]["fp64"] = spelled(FlopRate{best / 2});
  gpu["sources"]["/dense_peak/fp64"] = "half of fp32: a vector holds half as many elements";
  for (const char* narrow : {"bf16", "fp16", "fp8", "fp4"}) {
    gpu["dense_peak"][narrow] = spelled(FlopRate{best});
    gpu["sources"][std::string{"/dense_peak/"} + narrow] = "computed in fp32, rounded when stored";
  }
  return gpu;
}

}  // namespace

std::optional<std::string> catalogue_name(const Findings& findings) {
  if (!findings.gpu) return std::nullopt;
  return hardware::recognised_gpu(findings.gpu->name, findings.gpu->memory);
}

Json base_entry(const Findings& findings, int devices) {
  if (const auto known = catalogue_name(findings)) return hardware::Catalogue::gpu(*known);
  return findings.gpu ? unknown_gpu(findings) : processor(findings, devices);
}

std::string source_line(const Findings& findings) {
  if (!findings.gpu) return source_line(findings.machine);
  return fmt::format("calibrated {} on {}; {}; {}; {}", findings.machine.date, findings.gpu->name,
                     findings.gpu->versions, findings.machine.processor, findings.machine.system);
}

FlopRate fastest(const std::vector<ProductPoint>& points) {
  double best = 0;
  for (const ProductPoint& each : points) {
    best = std::max(best, static_cast<double>(each.work.count()) / seconds(each.time));
  }
  return FlopRate{best};
}

}  // namespace orrery::calibrate
