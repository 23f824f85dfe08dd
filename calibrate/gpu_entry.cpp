#include "calibrate/gpu_entry.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "calibrate/spelled.hpp"
#include "hardware/catalogue.hpp"

namespace orrery::calibrate {

namespace {

/// Whose kernels the attention curve was measured on, for the text of its source.
std::string attention_words(const executor::FusedAttention& of) {
  if (of.by_library == 0) return "the executor's own kernels";
  if (of.by_own == 0) return of.library;
  return fmt::format("{} in {} of {} shapes, the executor's own kernels in the others", of.library,
                     of.by_library, of.by_library + of.by_own);
}

/// A GPU entry whose curves are replaced by measured ones.
class GpuEntry {
 public:
  GpuEntry(const Findings& findings, Json base, std::vector<FittedCurve>& curves)
      : findings_{findings},
        gpu_(std::move(base)),
        curves_{curves},
        source_{source_line(findings)},
        read_{read_back()} {}

  Json write() {
    for (const auto& [format, points] : findings_.products) put_products(format, points);
    for (const auto& [format, points] : findings_.batched) put_batched(format, points);
    put_grouped();
    put_attention();
    put_kernels();
    put_host_link();
    put_concurrency();
    put_overlap();
    put_loads();
    if (findings_.gpu) gpu_["notes"] = notes();
    return std::move(gpu_);
  }

 private:
  /// The entry as written so far, read back as a Gpu.
  hardware::Gpu read_back() const {
    const Document document = Document::from(gpu_, "the catalogue's GPU");
    return hardware::read_gpu(document.root());
  }

  Roof roof(hardware::DType format, const std::vector<ProductPoint>& points) const {
    return {.peak = read_.peak(format).value_or(fastest(points)), .memory = read_.memory_bandwidth};
  }

  void put_products(hardware::DType format, const std::vector<ProductPoint>& points) {
    const std::string word{hardware::name(format)};
    const Roof under = roof(format, points);
    const GemmCalibration fit = fit_gemms(points, under);
    if (!read_.peak(format)) gpu_["dense_peak"][word] = spelled(under.peak);
    gpu_["gemm"][word] = curve_json(fit.curve);
    gpu_["measured"]["gemm"][word] = ratios_json(fit.residuals);
    const bool narrow = format == hardware::DType::fp8;
    gpu_["sources"]["/gemm/" + word] =
        narrow ? source_ + "; includes quantising weights and transposing operands in each GEMM"
               : source_;
    curves_.push_back({"gemm " + word, points.size(), fit.leave_out_error_pct});
  }

  void put_batched(hardware::DType format, const std::vector<ProductPoint>& points) {
    const std::string word{hardware::name(format)};
    const GemmCalibration fit = fit_gemms(points, roof(format, points));
    gpu_["measured"]["batched"][word] = curve_json(fit.curve);
    gpu_["measured"]["batched_gemm"][word] = ratios_json(fit.residuals);
    curves_.push_back({"batched_gemm " + word, points.size(), fit.leave_out_error_pct});
  }

  /// Relative to the dense GEMM curves fitted so far.
  void put_grouped() {
    for (const auto& [format, fit] : fit_grouped(findings_.grouped, read_back())) {
      const std::string word{hardware::name(format)};
      gpu_["measured"]["grouped_gemm"][word] = ratios_json(fit.residuals);
      curves_.push_back({"grouped_gemm " + word, fit.residuals.size(), {}});
      if (fit.even > 0) grouped_notes_ += grouped_note(word, "even rows", fit.even);
      if (fit.skewed > 0) grouped_notes_ += grouped_note(word, "rows by Zipf's law", fit.skewed);
    }
  }

  static std::string grouped_note(const std::string& format, const char* rows, double ratio) {
    return fmt::format(
        "{} grouped GEMMs with {} take {:.2f} times as long as one GEMM of as many FLOPs. ", format,
        rows, ratio);
  }

  void put_attention() {
    if (findings_.attention.empty()) return;
    const auto peak = read_.peak(hardware::DType::bf16);
    if (!peak) return;
    const double kept = sustained_share(findings_, SustainedLoad::Of::attention).value_or(1);
    std::vector<AttentionPoint> points = findings_.attention;
    for (AttentionPoint& each : points) each.time = scaled(each.time, 1 / kept);
    const AttentionFit fit = fit_attention(points, *peak);
    const std::string name = attention_name(findings_.fused);
    gpu_["attention"][name] = {{"share_64", digits(fit.curve.share_64)},
                               {"share_128", digits(fit.curve.share_128)},
                               {"half_length", digits(fit.curve.half_length)},
                               {"causal_penalty", digits(fit.curve.causal_penalty)},
                               {"backward_ratio", digits(fit.curve.backward_ratio)}};
    gpu_["sources"]["/attention/" + name] =
        source_ + "; " + attention_words(findings_.fused) +
        (kept < 1 ? fmt::format("; at {:.3g} of its isolated rate, as sustained under load", kept)
                  : std::string{});
    curves_.push_back({"attention, fused", findings_.attention.size(), fit.leave_out_error_pct});
  }

  /// Each kind of kernel with the form that fits better, and one memory-bound curve over all kinds
  /// for kernels without a measured kind.
  void put_kernels() {
    std::vector<KernelPoint> all;
    for (const auto& [kind, points] : findings_.kernels) {
      const TrafficFit fit = fit_kernel(points);
      gpu_["measured"]["kernels"][kind] = kernel_json(fit.curve);
      curves_.push_back({kind, fit.sizes, fit.leave_out_error_pct});
      if (kind.find('>') == std::string::npos) all.insert(all.end(), points.begin(), points.end());
    }
    if (all.empty()) return;
    gpu_["sources"]["/measured"] = source_;
    const TrafficFit usual = fit_kernel(all);
    const Bytes large = findings_.gpu ? 256_MiB : 1_MiB;  // typical traffic: in HBM, or in a cache
    const Time small = usual.curve.at(Bytes{1});
    const double rate = static_cast<double>(large.count()) /
                        std::max(1e-12, seconds(usual.curve.at(large) - small));
    const double share = std::clamp(rate / read_.memory_bandwidth.count(), 1e-6, 1.0);
    gpu_["memory_bound"] = {{"memory_share", digits(share)}, {"overhead", spelled(small)}};
    gpu_["sources"]["/memory_bound"] = source_;
  }

  /// Page-locked copies by size. The data sheet's link rate is kept if the catalogue has one,
  /// because the cost models of collectives over PCIe are shares of it.
  void put_host_link() {
    double slower = 0;
    for (const auto& [word, path] : {std::pair{"to_device", CopyPath::pinned_to},
                                     std::pair{"from_device", CopyPath::pinned_from}}) {
      std::map<Bytes, Time> points;
      for (const CopyPoint& each : findings_.copies) {
        if (each.path == path) points[each.size] = each.time;
      }
      if (points.empty()) return;
      gpu_["measured"]["host_link"][word] =
          points_of(hardware::SizeTable{{points.begin(), points.end()}});
      const double rate = best_copy(findings_, path);
      slower = slower > 0 ? std::min(slower, rate) : rate;
    }
    gpu_["sources"]["/measured"] = source_;
    if (read_.host_link.count() > 0) return;
    gpu_["host_link"] = spelled(Bandwidth{slower});
    gpu_["sources"]["/host_link"] =
        source_ + ", the slower direction of the largest page-locked copies";
  }

  void put_concurrency() {
    for (const hardware::Concurrency& each : findings_.concurrency) {
      gpu_["measured"]["concurrency"].push_back({{"ranks", each.ranks},
                                                 {"gemm", digits(each.gemm)},
                                                 {"memory_bound", digits(each.memory_bound)}});
    }
  }

  /// Only for GPUs that communicate: overlap with a copy says nothing about NCCL's kernels.
  void put_overlap() {
    if (!findings_.overlap_with_communication) return;
    const OverlapTimes& of = *findings_.overlap_with_communication;
    const auto longer = [](Time overlapped, Time alone) {
      return digits(std::clamp(ratio(overlapped, alone), 1.0, 100.0));
    };
    gpu_["measured"]["beside_communication"] = {
        {"compute", longer(of.kernel_overlapped, of.kernel)},
        {"communication", longer(of.other_overlapped, of.other)}};
    gpu_["sources"]["/measured"] = source_;
  }

  /// Share of their isolated rate that GEMMs sustain under load: every predicted GEMM time is
  /// divided by it.
  void put_loads() {
    const auto kept = sustained_share(findings_, SustainedLoad::Of::product);
    if (!kept) return;
    gpu_["sustained_share"] = digits(*kept);
    std::string source = source_ + ": rate under sustained load over the isolated rate";
    for (const SustainedLoad& each : findings_.loads) {
      if (each.of != SustainedLoad::Of::product) continue;
      source +=
          fmt::format("; {} {} for {}", each.what, format(each.sustained), format(each.isolated));
    }
    gpu_["sources"]["/sustained_share"] = source;
  }

  std::string notes() const {
    std::string text;
    const bool known = !findings_.loads.empty() && findings_.loads[0].conditions.readings > 0;
    if (known) {
      const Conditions& of = findings_.loads[0].conditions;
      text += fmt::format(
          "under load {:.0f} MHz (lowest {:.0f}), {:.0f} W (highest {:.0f}), capped by power in "
          "{:.0f} % of samples. ",
          of.processor.count() / 1e6, of.slowest_processor.count() / 1e6, of.power.count(),
          of.most_power.count(), 100 * of.power_capped);
    } else {
      text += "clocks and power under load: unknown. ";
    }
    text += grouped_notes_;
    for (const NamedOverlap& each : findings_.overlaps) {
      text += fmt::format("{} takes {:.2f} times as long during {}, which takes {:.2f} times. ",
                          each.kernel, ratio(each.times.kernel_overlapped, each.times.kernel),
                          each.other, ratio(each.times.other_overlapped, each.times.other));
    }
    for (const auto& [path, locked_path] :
         {std::pair{CopyPath::to_device, CopyPath::pinned_to},
          std::pair{CopyPath::from_device, CopyPath::pinned_from}}) {
      const double pageable = best_copy(findings_, path) / 1e9;
      const double locked = best_copy(findings_, locked_path) / 1e9;
      if (pageable > 0)
        text += fmt::format("pageable memory {}: {:.3g} GB/s", name(path), pageable);
      if (locked > 0) text += fmt::format(", page-locked: {:.3g} GB/s", locked);
      if (pageable > 0) text += ". ";
    }
    text.pop_back();
    return text;
  }

  const Findings& findings_;
  Json gpu_;
  std::vector<FittedCurve>& curves_;
  std::string source_;
  hardware::Gpu read_;  // before anything is replaced
  std::string grouped_notes_;
};

}  // namespace

Json gpu_entry(const Findings& findings, int devices, std::vector<FittedCurve>& curves) {
  return GpuEntry{findings, base_entry(findings, devices), curves}.write();
}

const char* attention_name(const executor::FusedAttention& of) {
  return of.by_library > 0 && of.by_own == 0 ? "cudnn" : "orrery";
}

}  // namespace orrery::calibrate
