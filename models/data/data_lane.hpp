#pragma once
// The input of a step as a lane of its own: samples are read from a store that nodes share, or from
// a cache, decoded and augmented, and copied to the GPUs, while earlier steps compute. A step waits
// for what is not ready. Leaves out shuffling, that some samples are larger than others unless
// `jitter` says so, and the memory that batches wait in.
//   step = max(compute, longest stage)          loaded in the background, every time the same
//   step = compute + all stages                 loaded when it is asked for
//   else the mean of a tandem of stages with a buffer before the step, batch by batch
// Source  a loader, n batches and a step, all exponential: mu (1 - P0) with P0 = (1 - r) / (1 -
//         r^(n+3)), r = loader's over step's rate (M/M/1 with n + 2 places); the tests compare

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/quantity.hpp"
#include "sim/words.hpp"

namespace orrery::models {

struct Plan;

/// How samples are stored: a row of formats.csv.
struct DataFormat {
  std::string name, kind;  // kind: "text" (per token), "image" (per picture of `pixels`), "sample"
  double bytes = 0;        // of one in the store
  double decoded_bytes = 0;  // of one as it is copied to a GPU
  double per_core = 0;       // decoded by a core in a second; 0: nothing to decode
  double pixels = 0;         // that these figures are of
  std::string source;
};
const std::vector<DataFormat>& data_formats();
/// Errors  `unknown data format 'x'; known: ...`: InputError
const DataFormat& data_format(const std::string& name);

/// What nodes read from, over the network.
struct DataStore {
  Bandwidth bandwidth{};               // of all readers together
  std::optional<Bandwidth> of_node{};  // what one node can read at most
  std::int64_t shared_by = 0;          // nodes that read alike, of all jobs; 0: this job's
  double requests_per_second = 0;      // of all readers together, one a sample; 0: no limit
  Time latency{};                      // of a request, before its bytes
  std::int64_t in_flight = 1;          // requests of one node at a time
};

/// Samples that a node still has: from its memory or drives.
struct DataCache {
  double hit = 0;          // share of samples
  Bandwidth bandwidth{};   // of one node
  bool overlapped = true;  // with reads from the store
};
/// Hits of a cache that holds a share f of the samples, each read once an epoch in random order.
///   kept for ever: f;   least recently used leaves: f + (1 - f) ln(1 - f)
/// Source  Mohan et al. 2021, "Analyzing and mitigating data stalls" (CoorDL) for the first; the
///         second follows from the distance between two reads of a sample in two permutations
double lru_hits(double share);

enum class DecodePlace : std::uint8_t { cpu, gpu };
inline constexpr Words<DecodePlace, 2> decode_place_words{
    {{DecodePlace::cpu, "cpu"}, {DecodePlace::gpu, "gpu"}}};

/// Standard deviations over means, of a batch's time; 0: constant. Drawn as a sum of k exponential
/// variables, k the nearest to 1 / deviation^2.
struct DataJitter {
  double read = 0, decode = 0, copy = 0, step = 0;

  bool any() const { return read > 0 || decode > 0 || copy > 0 || step > 0; }
};
inline constexpr double least_data_jitter = 0.1;

struct DataRequest {
  std::string format;
  double bytes = 0, decoded_bytes = 0;  // of a sample
  double samples = 1;                   // of a sequence of the batch
  DataStore store;
  std::optional<DataCache> cache;
  DecodePlace decoded_on = DecodePlace::cpu;
  double cores = 0;     // of a node, that decode and augment
  double per_core = 0;  // samples that a core decodes in a second; 0: nothing to decode
  double augmented_per_core = 0;
  double per_gpu = 0;         // samples that a GPU decodes in a second
  double gpu_share = 0;       // of the GPU's own kernels that wait meanwhile
  Bandwidth copy{};           // to each GPU
  std::int64_t prefetch = 2;  // batches that may be ready before a step
  bool background = true;
  DataJitter jitter;
  double spread = 0.2;          // of the logarithm of what its stages take: nobody knows it better
  std::int64_t batches = 4096;  // simulated where anything varies
  std::uint64_t seed = 1;
};

/// What one step asks of one node and of one GPU.
struct DataDemand {
  std::int64_t nodes = 1;  // that read
  double samples_of_node = 0, samples_of_gpu = 0;
};
/// The ranks of the first stage read, numbered before all others: a tensor group once, a context
/// group in parts.
DataDemand demand_of(const DataRequest& request, const Plan& plan, int gpus_per_node);

struct DataStage {
  std::string name;  // "read", "decode", "copy"
  Time time{};       // for the batch of a step
  double deviation = 0;
};

/// The lane next to one step.
struct DataAnswer {
  DataDemand demand;
  std::vector<DataStage> stages;    // those that take time, in order
  Time from_store{}, from_cache{};  // parts of "read"
  std::string read_limit;           // "bandwidth", "requests", "latency" or "cache"
  Bytes read{};                     // from the store in a step, by all nodes
  Time gpu_time{};                  // that decoding takes from the GPU's kernels
  Time longest{}, fill{};           // the slowest stage; a first batch through all stages
  Time compute{}, step{};           // the step without its data, and with it
  bool simulated = false;
  double error_seconds = 0;  // standard error of a simulated step

  Time wait() const { return step - compute; }
  /// Share of the time in which the GPUs have their batch.
  double utilisation() const { return ratio(compute, step); }
  /// The longest stage; empty without stages.
  std::string slowest() const;
};

/// How much longer than predicted reads take, and all stages.
struct DataSlowdown {
  double reads = 1, all = 1;
};
DataAnswer data_lane(const DataRequest& request, const DataDemand& demand, Time compute,
                     const DataSlowdown& slowdown = {});

/// Stations in a row, each with one batch at a time; a batch stays in its station until there is
/// room behind it: a place of the buffer before the last, or the next station.
struct Tandem {
  struct Station {
    Time time{};
    double deviation = 0;
  };
  std::vector<Station> stations;  // the last is the step
  std::int64_t buffer = 0;        // places before the last
  std::int64_t batches = 4096;
  std::uint64_t seed = 1;
};
struct TandemAnswer {
  Time interval{};  // mean between two ends of the last station
  double error_seconds = 0;
};
/// After an eighth of the batches, with which it fills.
TandemAnswer run_tandem(const Tandem& tandem);

}  // namespace orrery::models
