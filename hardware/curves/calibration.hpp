#pragma once
// What calibration measured on one device beyond the curves of gpu.hpp: time tables by kind of
// kernel, GEMM residuals by shape, batched GEMMs, and the slowdown of a kernel while other ranks of
// its machine compute. All of it may be absent, as on a GPU known only by its data sheet. Kernel
// tables leave out the number format, which only changes the bytes.

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "hardware/curves/curve.hpp"
#include "hardware/curves/shape_residual.hpp"
#include "hardware/curves/size_table.hpp"
#include "hardware/dtype.hpp"

namespace orrery {
class Node;
}

namespace orrery::hardware {

/// Time of one kind of kernel by its memory traffic: the measured table or, without one,
///   t = overhead + bytes / rate
struct KernelCurve {
  SizeTable table;
  Time overhead{};
  Bandwidth rate{};

  Time at(Bytes traffic) const {
    return table.empty() ? overhead + traffic / rate : table.at(traffic);
  }
};

/// Slowdown of kernels while `ranks` ranks compute concurrently and share cores and memory: time
/// over that of one rank alone.
struct Concurrency {
  int ranks = 1;
  double gemm = 1;
  double memory_bound = 1;
};

/// Times of copies between the device and page-locked memory of its host, by size.
struct HostLink {
  SizeTable to_device, from_device;
};

/// Slowdown, 1 or more, while compute and a collective of the same rank overlap: of the compute,
/// and of the collective.
struct CommunicationOverlap {
  double compute = 1;
  double communication = 1;
};

enum class KernelClass : std::uint8_t { gemm, memory_bound };

struct Calibration {
  /// By kind, "norm_backward", and by function and operands: "add 3>1", "activation gelu 1>1".
  std::map<std::string, KernelCurve, std::less<>> kernels;
  std::map<DType, ShapeResidual> gemm;          // measured time over GemmCurve's, by shape
  std::map<DType, GemmCurve> batched;           // one GEMM of a batched call
  std::map<DType, ShapeResidual> batched_gemm;  // measured time over `batched`, by shape
  std::map<DType, ShapeResidual> grouped_gemm;  // ... over models/pricing/grouped.hpp
  std::vector<Concurrency> concurrency;         // by increasing ranks, from 2
  std::optional<CommunicationOverlap>
      beside_communication;           // that of compute is priced, the other reported
  std::optional<HostLink> host_link;  // no operation of a Program asks for it yet

  const KernelCurve* kernel(std::string_view kind) const;
  /// How much longer a kernel takes concurrently with `ranks` - 1 others: interpolated linearly
  /// between measured rank counts, proportional to `ranks` beyond the last, 1 if nothing was
  /// measured.
  double slowdown(KernelClass kind, int ranks) const;
};

/// Reads a GPU's `measured` member.
Calibration read_calibration(const Node& measured);

/// Reads a table written as `[["256 B", "12 us"], ...]`.
SizeTable read_size_table(const Node& points);

}  // namespace orrery::hardware
