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

}  // namespace orrery::scenarios
