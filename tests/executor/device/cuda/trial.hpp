#pragma once
// One operation with operands of our choosing, performed by the CPU and by the GPU's kernels.

#include <array>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "executor/device/device.hpp"

namespace orrery::executor::cuda {

using models::DType;
using models::OpKind;
using Numbers = std::vector<double>;
using Shape = std::array<std::int64_t, 3>;

/// What the i-th element is.
using Fill = std::function<double(std::int64_t)>;

/// Normal with deviation 1, others for another stream.
Fill normal(std::uint64_t stream);
Fill constant(double value);
/// Integers from 0 to `count` - 1, many of them again and again.
Fill integers(std::int64_t count);

class Trial {
 public:
  explicit Trial(OpKind kind, std::string name = "trial");

  models::Operation operation;
  Place place;
  AdamStep adam;

  /// Operands in the operation's order; what is written begins as `fill` says, or as NaN.
  Trial& read(DType dtype, Shape shape, const Fill& fill);
  Trial& write(DType dtype, Shape shape, const Fill& fill = {});
  /// Writes over what the `index`-th read is.
  Trial& write_over(std::size_t index);
  /// Moves the GPU's operands off 16 bytes by this many elements of theirs.
  Trial& askew(std::int64_t elements);

  /// What the GPU's kernels, or the CPU's, leave in each operand that is written.
  std::vector<Numbers> by_gpu() const;
  std::vector<Numbers> by_cpu() const;

  /// What a whole device leaves there, which may have libraries next to its kernels.
  std::vector<Numbers> on(Device& device) const;

  /// Are all of the kernels' numbers the CPU's, but for `unit` of each and of the largest? With
  /// `unit` 0, a few roundings of each operand's format. Where not, distance and bound are shown.
  void check(double unit = 0) const;
  void check_on(Device& device, double unit = 0) const;

 private:
  struct Operand {
    DType dtype;
    Shape shape;
    std::vector<std::byte> bytes;
  };
  struct Views {
    std::vector<View> reads, writes;
  };

  /// With the i-th operand at `place(i)`.
  Views views(const std::function<std::byte*(std::size_t)>& place) const;
  Kernel kernel(const Views& views) const;
  void compare(const std::vector<Numbers>& found, const std::vector<Numbers>& expected,
               double unit) const;

  std::vector<Operand> operands_;  // each once
  std::vector<std::size_t> reads_, writes_;
  std::int64_t askew_ = 0;
};

/// Calls `test` with each format that activations are stored in.
void for_each_format(const std::function<void(DType)>& test);
/// And with each format of gradients and states next to it: the same, and fp32 next to 16 bits.
void for_each_pair(const std::function<void(DType, DType)>& test);
DType state_beside(DType storage);

}  // namespace orrery::executor::cuda
