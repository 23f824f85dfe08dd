#pragma once
// Member `data` of a scenario: where a step's input comes from, and how it gets to the GPUs
// (models/data/data_lane.hpp).
//   {format, bytes, decoded_bytes, pixels, samples,
//    store: {bandwidth, of_node, shared_by, requests_per_second, latency, in_flight},
//    cache: {hit, share, eviction, bandwidth, overlapped},
//    decode: {on, cores, per_core, per_gpu, gpu_share}, augment, copy,
//    prefetch, background, jitter: {read, decode, copy, step}, spread, batches, seed}
// A scenario without it has every batch ready when its step begins.

#include <string>
#include <vector>

#include "models/prediction/prediction.hpp"
#include "sim/input/document.hpp"

namespace orrery::scenarios {

/// question     its model, cluster and plan, which decide how much is read by how many nodes
/// assumptions  receives what is not stated
/// Errors       InputError with file and pointer
models::DataRequest read_data(const Node& node, const models::Question& question,
                              std::vector<std::string>& assumptions);

/// Member `data` of a prediction.
Json data_json(const models::DataRequest& request, const models::DataAnswer& answer);

/// "read 0.31 s (bandwidth), decode 0.52 s on 16 cores, copy 4.1 ms: ... ".
std::string data_words(const models::DataRequest& request, const models::DataAnswer& answer);

/// Member `data` of a scenario, as a flag states it: JSON, or the path of a file with it, or with a
/// scenario that has it; with what was measured, as below. Errors  `FLAG: expected ..., found 'x'`;
/// the file's own
Json data_from_flag(const std::string& flag, const std::string& text, const Json& cluster,
                    std::int64_t seq_len, std::vector<std::string>& assumptions);

/// The same with what was measured on the cluster in place of what is not stated: rates of decoding
/// of its `decoding`, and `storage/random_read` as the latency of samples that lie anywhere.
/// cluster  as its file states it, expanded
/// Errors   /cluster/decoding: a format that does not exist: InputError
Json with_measured_data(const Node& data, const Json& cluster, std::int64_t seq_len,
                        std::vector<std::string>& assumptions);

/// "waits 1.2 s of each step (27 %) for its input: decode takes longest"; empty where no step
/// waits.
std::string wait_words(const models::DataAnswer& lane);
/// `{wait_s, slowest}`.
Json wait_json(const models::DataAnswer& lane);

}  // namespace orrery::scenarios
