#pragma once
// The events of a Kineto trace that an analysis of steps needs, in 64 bytes or fewer each: names
// and words are numbers of a table. Nothing is judged here.

#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

namespace orrery::scenarios {

using NameId = std::uint32_t;

/// Words by number. The number 0 is the empty word.
class NameTable {
 public:
  NameTable() { id(""); }
  NameId id(const std::string& word);
  const std::string& operator[](NameId id) const { return *words_[id]; }

 private:
  std::unordered_map<std::string, NameId> ids_;
  std::vector<const std::string*> words_;  // keys of the map, which do not move
};

/// An event with a duration, in nanoseconds.
struct KinetoSpan {
  std::int64_t begin = 0, end = 0;
  NameId name = 0;
  std::int32_t thread = 0;  // of the host; of a device's event the stream
};

/// A kernel, copy or fill.
struct DeviceEvent : KinetoSpan {
  enum class Kind : std::uint8_t { kernel, copy, fill } kind = Kind::kernel;
  std::int32_t device = 0;
  std::int64_t correlation = -1;
  std::int32_t call = -1;  // in KinetoTrace::calls
};

/// What a kernel of NCCL states of its collective.
struct StatedCall {
  std::string name, type, group, description, members;
  std::int64_t in = -1, out = -1, ranks = 0;
};

/// An operator or annotation with the sizes of its inputs, where they are recorded.
struct HostSpan : KinetoSpan {
  NameId sizes = 0, types = 0;  // "[[8,4],[4,2]]", "[\"float\",\"float\"]"
};

struct KinetoTrace {
  NameTable names;
  std::vector<DeviceEvent> device;
  std::vector<HostSpan> annotations;  // of the user and of PyTorch: steps, optimizers, nccl:*
  std::vector<HostSpan> products;     // operators that multiply matrices
  std::vector<KinetoSpan> operators;  // all of them, where no device's event is in the trace
  std::unordered_map<std::int64_t, KinetoSpan> launches;  // by correlation
  std::vector<StatedCall> calls;
  std::optional<std::int64_t> rank, world;
  std::string gpu, host;
  std::int64_t gpu_memory = 0;  // bytes; 0: not stated
  std::size_t events = 0;
};

/// Errors  InputError: not JSON or cut off (`FILE: byte N: ...`), no list of events
KinetoTrace read_kineto_trace(const std::string& path);

}  // namespace orrery::scenarios
