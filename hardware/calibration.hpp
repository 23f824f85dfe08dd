#pragma once
// What a calibration measured on one device beyond the plain curves of gpu.hpp: tables by kind of
// kernel, what the GEMM curve misses at some shapes, many small products, and what a kernel loses
// when the other ranks of its machine compute too. All of it may be absent, as on any datasheet
// GPU. Leaves out number formats: their bytes differ.

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "hardware/curve.hpp"
#include "hardware/dtype.hpp"
#include "hardware/shape_residual.hpp"
#include "hardware/size_table.hpp"

namespace orrery {
class Node;
}

namespace orrery::hardware {

/// A kind of kernel by its memory traffic: the measured table, or where none is kept
///   t = overhead + bytes / rate
struct KernelCurve {
  SizeTable table;
  Time overhead{};
  Bandwidth rate{};

  Time at(Bytes traffic) const {
    return table.empty() ? overhead + traffic / rate : table.at(traffic);
  }
};

/// Ranks that compute at once share cores and memory: time over that of one rank alone.
struct Concurrency {
  int ranks = 1;
  double gemm = 1;
  double memory_bound = 1;
};

/// Copies between the device and page-locked memory of its host, by size.
struct HostLink {
  SizeTable to_device, from_device;
};

/// Times over those alone, 1 or more: of compute while a collective of the same rank runs, and of
/// the collective while compute does.
struct CommunicationOverlap {
  double compute = 1;
  double communication = 1;
};

enum class KernelClass : std::uint8_t { gemm, memory_bound };

struct Calibration {
  /// By kind, "norm_backward", and by function and operands: "add 3>1", "activation gelu 1>1".
  std::map<std::string, KernelCurve, std::less<>> kernels;
  std::map<DType, ShapeResidual> gemm;          // measured over GemmCurve, by shape
  std::map<DType, GemmCurve> batched;           // one of many products in a call
  std::map<DType, ShapeResidual> batched_gemm;  // ... and what that misses
  std::map<DType, ShapeResidual> grouped_gemm;  // measured over models/pricing/grouped.hpp
  std::vector<Concurrency> concurrency;         // by increasing ranks, from 2
  std::optional<CommunicationOverlap>
      beside_communication;           // reported as an assumption, not priced yet
  std::optional<HostLink> host_link;  // no operation of a Program asks for it yet

  const KernelCurve* kernel(std::string_view kind) const;
  /// How much longer a kernel takes concurrently with `ranks` - 1 others: on a line between
  /// measured ranks, in proportion to ranks beyond the last. 1 where nothing was measured.
  double slowdown(KernelClass kind, int ranks) const;
};

/// Of a GPU's `measured` member.
Calibration read_calibration(const Node& measured);

/// A table as files write it: `[["256 B", "12 us"], ...]`.
SizeTable read_size_table(const Node& points);

}  // namespace orrery::hardware
