#pragma once
// Where the lowering puts things in a Program of one kind of layer, so that tests can name them by
// index. The product asks a Program for kinds, roles and chunks instead.

#include <cstdint>

namespace orrery::models {

/// Blocks that every Program starts with.
enum BlockIndex : std::uint32_t {
  layer_forward,
  layer_backward,
  embedding_forward,
  embedding_backward,
  head_forward,
  head_backward,
  first_step_block,
};

/// Communicators that every Program starts with.
enum CommunicatorIndex : std::uint16_t {
  tensor_group,
  data_group,
  forward_pipe,
  backward_pipe,
  model_group,
  world_group,
  tie_group,
};

/// The phase of a chunk's forward, and of its backward.
constexpr std::uint32_t forward_phase(std::int64_t chunk) {
  return static_cast<std::uint32_t>(2 * chunk);
}
constexpr std::uint32_t backward_phase(std::int64_t chunk) {
  return static_cast<std::uint32_t>(2 * chunk + 1);
}
/// The channel on which a stage sends activations down, and gradients up.
constexpr std::uint32_t forward_channel(std::int64_t from) {
  return static_cast<std::uint32_t>(2 * from);
}
constexpr std::uint32_t backward_channel(std::int64_t from) {
  return static_cast<std::uint32_t>(2 * from + 1);
}

}  // namespace orrery::models
