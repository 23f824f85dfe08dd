#pragma once
// One entry of a rank's instruction list, and the phases of blocks that it may run. What an
// instruction costs is not stated here.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace orrery::models {

enum class Opcode : std::uint8_t {
  forward,          // run a phase; the embedding reads tokens of the micro-batch, the head labels
  backward,         // run a phase (recomputation and accumulation are operations in it)
  weight_gradient,  // run a phase: the weight gradients of a backward that was split
  send,             // to the peer of a channel, in channel order
  receive,          // from the peer of a channel, in channel order
  reduce_gradient,  // reduce one gradient bucket over its data-parallel replicas
  sum_replicas,     // sum a gradient of which several ranks hold a part: tied embedding, norms
                    // replicated over tensor ranks, the two copies of a stage (DualPipe)
  norm,             // all-reduce the gradient norm; the host waits for it
  optimizer,        // run a phase over the parameters, or shard of them, that the rank updates
  gather,           // gather parameters over the data axis after the optimizer (ZeRO-1 and 2)
  compress,         // run a phase that compresses or decompresses one gradient bucket; consumes no
                    // activation and produces none
  unshard,          // gather one unit's parameters over the data axis before it runs (ZeRO-3)
};
inline constexpr int opcode_count = 12;
std::string_view name(Opcode op);

inline constexpr std::uint32_t no_binding = 0xffffffff;

/// The roles of an instruction's buffers. `saved` holds the activations of a micro-batch, those
/// received from the previous chunk included; `in` the gradient that was received; `out` what will
/// be sent. `weights` holds gathered parameters: bound by the `unshard` that fills the buffer,
/// freed by the last phase that awaits it. Where backward is split, `kept` (saved by forward) and
/// `delayed` (made by backward) hold what the weight gradients read and outlive backward; both have
/// the index of `saved`.
enum Slot : std::uint8_t {
  slot_saved = 0,
  slot_in = 1,
  slot_out = 2,
  slot_weights = 3,
  slot_kept = 4,
  slot_delayed = 5
};
inline constexpr Slot slot_filled = slot_saved;  // the binding of the buffer that `unshard` fills
inline constexpr int slot_count = 6;
constexpr std::uint8_t bit(Slot slot) {
  return static_cast<std::uint8_t>(1U << slot);
}
/// Which element of Instruction::bindings is the buffer index of a slot.
constexpr int index_of(Slot slot) {
  return slot == slot_kept || slot == slot_delayed ? slot_saved : slot;
}

/// An event that later instructions wait for, named by the index of the instruction that makes it:
/// the end of a receive or a joint collective; the output of a phase and the end of its kernels. A
/// send makes none.
using Token = std::uint32_t;
inline constexpr Token no_token = 0xffffffff;

/// One instruction. 32 bytes: a step of a trillion-parameter model has 200,000 of them.
struct Instruction {
  Opcode op = Opcode::forward;
  std::uint16_t chunk = 0;   // in model order
  std::uint32_t target = 0;  // phase, channel or joint collective, by opcode
  std::uint32_t micro_batch : 20 = 0;
  std::uint32_t binds : 6 = 0;  // bit per Slot: buffers allocated when the instruction starts
  std::uint32_t frees : 6 = 0;  // bit per Slot: buffers freed when the instruction has ended
  std::uint32_t bindings[3] = {no_binding, no_binding, no_binding};  // index within buffer type
  /// What it consumes. A phase: the receive or joint collective whose result its first block reads;
  /// no token: its input is ready from the start. A send: the phase whose output it sends. A joint
  /// collective: the phase after whose kernels it may start.
  Token input = no_token;
  /// Of a phase: the joint collective for whose end the compute lane waits, either the gather of
  /// its weights or the reduction that empties the bucket it fills.
  Token awaits = no_token;
};
static_assert(sizeof(Instruction) == 32);

/// A block bound to `count` consecutive layers (ascending in forward, descending in backward).
struct Invocation {
  std::uint32_t block = 0;
  std::int64_t first_layer = 0;  // in model order; -1 for blocks that belong to no layer
  std::int64_t count = 1;
};

/// What a forward, backward, weight_gradient, optimizer or compress instruction runs: blocks in
/// order, bound to layers.
struct Phase {
  std::string name;
  std::vector<Invocation> invocations;
};

}  // namespace orrery::models
