#pragma once
// One entry of a rank's list, and the phases of blocks that it may run.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace orrery::models {

enum class Opcode : std::uint8_t {
  forward,          // run a phase; its first and last blocks draw tokens and labels
  backward,         // run a phase (recomputation and accumulation are operations in it)
  weight_gradient,  // run a phase: what a backward that was split leaves for later
  send,             // to the peer of a channel, in channel order
  receive,          // from the peer of a channel, in channel order
  reduce_gradient,  // a bucket over the data axis
  tie,              // sum what several ranks hold of one gradient: tied embedding, replicated norms
  norm,             // gradient norm: a barrier on which the host waits
  optimizer,        // run a phase over the owned shard
  gather,           // parameters over the data axis, after the optimizer (ZeRO-1 and 2)
  compress,         // run a phase over one gradient bucket: compression, or decompression; consumes
                    // no activation and produces none
  unshard,          // one unit's parameters over the data axis, for the runs ahead (ZeRO-3)
};
inline constexpr int opcode_count = 12;
std::string_view name(Opcode op);

inline constexpr std::uint32_t no_binding = 0xffffffff;

/// The places that an instruction binds buffers to. `in` is the gradient that arrived, `out` what
/// is to be sent; activations arrive in the saved buffer of their micro-batch. Gathered weights are
/// bound by the `unshard` that fills them and freed, as slot_weights, by the last phase that awaits
/// it. Where backward is split, what the weight gradients read outlives it: `kept` of what forward
/// saves, `delayed` of what backward makes. Both have the index of the saved activations.
enum Slot : std::uint8_t {
  slot_saved = 0,
  slot_in = 1,
  slot_out = 2,
  slot_weights = 3,
  slot_kept = 4,
  slot_delayed = 5
};
inline constexpr Slot slot_filled = slot_saved;  // of an `unshard`
inline constexpr int slot_count = 6;
constexpr std::uint8_t bit(Slot slot) {
  return static_cast<std::uint8_t>(1U << slot);
}
/// Which of an instruction's bindings is the index of what it holds in a slot.
constexpr int index_of(Slot slot) {
  return slot == slot_kept || slot == slot_delayed ? slot_saved : slot;
}

/// What an instruction makes, named by the instruction's index in its list: a receive or a joint
/// collective makes its own end; a phase makes its output, and the end of its kernels; a send makes
/// nothing that a later instruction waits for.
using Token = std::uint32_t;
inline constexpr Token no_token = 0xffffffff;

/// One schedule instruction. 32 bytes: a step of a trillion parameters has 200,000 of them.
struct Instruction {
  Opcode op = Opcode::forward;
  std::uint16_t chunk = 0;   // in model order
  std::uint32_t target = 0;  // phase, channel or joint collective, by opcode
  std::uint32_t micro_batch : 20 = 0;
  std::uint32_t binds : 6 = 0;  // bit per Slot: held from the beginning of the instruction
  std::uint32_t frees : 6 = 0;  // bit per Slot: freed when the instruction has ended
  std::uint32_t bindings[3] = {no_binding, no_binding, no_binding};  // index within buffer type
  /// What it consumes. A phase: what its first block reads, a receive or a joint collective;
  /// without one it is ready from the beginning. A send: the phase whose output it sends. A joint
  /// collective: the phase after whose kernels it may begin.
  Token input = no_token;
  /// Of a phase: the joint collective for whose end the compute queue waits: the gather of its
  /// weights, or the reduction that empties the bucket that it fills.
  Token awaits = no_token;
};
static_assert(sizeof(Instruction) == 32);

/// A block bound to `count` consecutive layers (ascending in forward, descending in backward).
struct Invocation {
  std::uint32_t block = 0;
  std::int64_t first_layer = 0;  // in model order; -1 for blocks that belong to no layer
  std::int64_t count = 1;
};

/// What FWD, BWD, WGRAD or OPT runs: blocks in order, bound to layers.
struct Phase {
  std::string name;
  std::vector<Invocation> invocations;
};

}  // namespace orrery::models
