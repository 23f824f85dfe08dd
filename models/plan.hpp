#pragma once
// How a model is cut over a cluster and scheduled: degrees, batches, precision, recomputation.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "hardware/dtype.hpp"
#include "models/model.hpp"
#include "sim/input/document.hpp"

namespace orrery::models {

enum class Recompute : std::uint8_t { none, selective, full };
enum class Zero : std::uint8_t { none, one };
enum class Precision : std::uint8_t { fp32, tf32, fp16, bf16, fp8 };

/// All degrees and choices of one training step. Derived fields are filled by `complete`.
struct Plan {
  std::int64_t tensor = 1;
  std::int64_t pipeline = 1;
  std::int64_t virtual_stages = 1;
  std::int64_t data = 1;
  bool sequence_parallel = false;
  std::string schedule = "1f1b";  // naive, gpipe, 1f1b, interleaved-1f1b
  std::int64_t micro_batch = 1;
  std::int64_t global_batch = 1;
  std::int64_t seq_len = 0;
  Precision precision = Precision::bf16;
  Recompute recompute = Recompute::none;
  Zero zero = Zero::none;
  bool overlap_gradients = true;  // data-parallel reduction beside backward
  Bytes bucket{};                 // gradient bucket; 0: the software's
  std::vector<std::int64_t> stage_layers;  // uneven: per chunk, in model order; empty: even
  bool embedding_counts = false;  // embedding and head take a layer's slot each

  std::int64_t gpus() const { return tensor * pipeline * data; }
  std::int64_t micro_batches() const { return global_batch / (micro_batch * data); }
  std::int64_t chunks() const { return pipeline * virtual_stages; }
};

constexpr hardware::DType compute_dtype(Precision precision) {
  using hardware::DType;
  constexpr DType of[] = {DType::fp32, DType::tf32, DType::fp16, DType::bf16, DType::fp8};
  return of[static_cast<int>(precision)];
}
/// What activations and working weights are stored in (fp8 trains with bf16 storage).
constexpr hardware::DType storage_dtype(Precision precision) {
  using hardware::DType;
  constexpr DType of[] = {DType::fp32, DType::fp32, DType::fp16, DType::bf16, DType::bf16};
  return of[static_cast<int>(precision)];
}

/// A conflict inside a plan or between plan, model and cluster: the pointer of the field that is
/// wrong (relative to the plan) and one clear sentence.
struct Conflict {
  std::string pointer;  // "/tensor"
  std::string problem;  // "tensor 3 does not divide the model's 32 attention heads"
};

/// Reads the JSON object; what can be derived may be left out (data from GPUs, global batch...).
/// `gpus` is the cluster's size. Fills `assumptions` with each default taken.
Plan read_plan(const Node& plan, const Model& model, std::int64_t gpus,
               std::vector<std::string>& assumptions);

/// Every conflict, in a fixed order; empty when the plan can be lowered.
std::vector<Conflict> conflicts(const Plan& plan, const Model& model, std::int64_t gpus);

/// Layers on each chunk in model order (stage of chunk c is c mod pipeline).
std::vector<std::int64_t> layers_per_chunk(const Plan& plan, const Model& model);

}  // namespace orrery::models
