#pragma once
// One measurement, our own or imported: quantity, value, device, and its place in the log. Curves
// are fitted to samples later; nothing is averaged here.

#include <cstdint>
#include <optional>
#include <string>
#include <variant>

#include "sim/input/document.hpp"
#include "sim/quantity.hpp"

namespace orrery::calibrate {

/// A time, a rate, or a bare ratio or count.
using Value = std::variant<Time, Bandwidth, double>;

struct Sample {
  std::string quantity;  // "all_reduce", "storage.write", "stream.triad", "kernel", ...
  std::string detail;    // which of them: "out_of_place", a kernel's name, a job's
  Value value{0.0};
  std::optional<Bytes> size;  // message (as nccl-tests counts it), block, or traffic
  std::optional<std::int64_t> ranks, nodes;
  std::int64_t count = 1;  // repetitions of which the value is the result
  std::string device;      // "NVIDIA H100 80GB HBM3"; empty: the log does not say
  std::string software;    // "nccl-tests 2.18.2, NCCL 2.30.7"
  std::string place;       // "log.txt:line 12", "log.json:/results/3"
};

/// `{quantity, detail, value, unit, bytes, ranks, nodes, count, device, software, place}`: value in
/// s, B/s or 1; what is not known is null.
Json to_json(const Sample& sample);

/// "1.5 ms", "98 GB/s", "1.42".
std::string format(const Value& value);

}  // namespace orrery::calibrate
