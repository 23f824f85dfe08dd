#pragma once
// Chooses the kernel of an attention: a library's where there is one and it takes the shape, else
// our own (flash.hpp). The choice is made once for each shape, before the first step. If a
// library's kernel then fails to run, that shape falls back to our own. `notes` reports every
// choice.

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "executor/device/cuda/attention/attention_library.hpp"
#include "executor/device/cuda/attention/fused_attention.hpp"
#include "executor/device/cuda/kernels/experts/token_places.hpp"

namespace orrery::executor::cuda {

/// What the environment asks for: ORRERY_ATTENTION=own|cudnn|cudnn-ordered. `open` takes a library
/// if there is one; `library` insists that there is one, but shapes that it refuses still run on
/// our own kernels.
enum class AttentionChoice : std::uint8_t { open, own, library };
struct AttentionOptions {
  AttentionChoice choice = AttentionChoice::open;
  SumOrder sums = SumOrder::any;  // of a library's kernels
};

/// value  of the variable, null where it is not set
/// Errors InputError `ORRERY_ATTENTION: expected own, cudnn or cudnn-ordered, found 'flash'`
AttentionOptions attention_options(const char* value);

/// The text on one line of at most 300 letters: libraries answer in paragraphs.
std::string in_one_line(std::string_view text);

/// ", attention by cuDNN 9.19.0", ", attention by cuDNN 9.19.0 in 12 of 15 shapes", ", own
/// attention (libcudnn.so.9: cannot open shared object file)"; empty before any ran.
std::string attention_text(const FusedAttention& use);

/// What a kernel may use: scratch memory of the device, aligned to 256 bytes and of at least the
/// size that is asked for, until the next kernel; and whether another kernel may be tried where one
/// fails, which a graph capture does not allow.
struct KernelRoom {
  std::function<std::byte*(Bytes)> scratch;
  bool may_retry = true;
  TokenPlaces tokens{};
};

class Attentions {
 public:
  /// open  called unless the choice is `own`
  /// Errors  choice `library` and there is none: InputError `ORRERY_ATTENTION: cudnn: WHY`
  Attentions(AttentionChoice choice, const std::function<OpenedLibrary()>& open);

  /// As `attention_refusal`, but a library may take what our kernels do not.
  std::string refusal(const models::Operation& operation);
  std::int64_t scratch_bytes(const models::Operation& operation);
  /// As `launch_attention`.
  void launch(const Kernel& kernel, Stream stream, const KernelRoom& room);

  /// Whether there is a library, and a line for each shape that ran:
  ///   "attention: cuDNN 9.19.0"
  ///   "attention forward bf16 4 x 2048, heads 32/8 x 64, causal: cuDNN 9.19.0, workspace 16 B"
  std::vector<std::string> notes() const;
  FusedAttention use() const;

  /// Kind, format, shape; a window as long as the sequence counts as none.
  using Key = std::array<std::int64_t, 11>;
  static Key key_of(const models::Operation& operation);

 private:
  struct Choice {
    std::string words;  // of the shape
    std::unique_ptr<AttentionPlan> plan;
    std::string refusal;  // the library's, where there is no plan
    bool ran = false;
  };
  Choice& choice_of(const models::Operation& operation);
  bool run_plan(Choice& choice, const Kernel& kernel, Stream stream, const KernelRoom& room);
  std::string line_of(const Choice& choice) const;

  std::unique_ptr<AttentionLibrary> library_;
  std::string absence_;  // why there is no library
  std::map<Key, Choice> choices_;
};

}  // namespace orrery::executor::cuda
