#include "calibrate/bench/operands.hpp"

#include <algorithm>

#include "executor/device/fp8_operand.hpp"
#include "sim/errors.hpp"

namespace orrery::calibrate {

namespace {

using executor::View;
using models::DType;
using models::Operand;
using models::OperandId;
using models::Operation;
using models::Role;

constexpr std::int64_t lies_on = 256;  // bytes: alignment for libraries' vector loads

Bytes room_on_device(const Operand& operand) {
  const std::int64_t room = std::max<std::int64_t>(executor::room_of(operand), 64);
  return Bytes{(room + lies_on - 1) / lies_on * lies_on};
}

bool is_multiplied(const models::Block& block, OperandId id) {
  const auto reads_it = [&](const Operation& op) {
    return is_gemm(op.kind) && std::ranges::find(op.reads, id) != op.reads.end();
  };
  return std::ranges::any_of(block.operations, reads_it);
}

/// Positive numbers for optimizer moments, which are under a square root, and for statistics of a
/// softmax or a loss, which are divisors.
Numbers numbers_of(const models::Block& block, OperandId id) {
  const Operand& of = block.operands[id];
  const bool statistic = of.role == Role::saved && bits(of.dtype) > 16 && !is_multiplied(block, id);
  return statistic || of.role == Role::optimizer ? Numbers::positive : Numbers::both_signs;
}

/// Fills memory with the pattern by copies on the device, each as long as all before it.
void fill(executor::Device& device, std::byte* memory, Bytes size, const NumberPattern& pattern) {
  const auto whole = static_cast<std::int64_t>(pattern.bytes().size());
  std::int64_t done = std::min(whole, size.count());
  device.write(pattern.bytes().data(), memory, Bytes{done});
  while (done < size.count()) {
    const std::int64_t next = std::min(done, size.count() - done);
    device.copy(memory, memory + done, Bytes{next}, models::Lane::compute);
    done += next;
  }
}

/// The number patterns of a block's operands, each made once.
class Patterns {
 public:
  explicit Patterns(std::int64_t tokens) : tokens_{std::max<std::int64_t>(1, tokens)} {}
  const NumberPattern& of(DType dtype, Numbers numbers) {
    for (const auto& each : made_) {
      if (each.dtype == dtype && each.numbers == numbers) return each.pattern;
    }
    return made_.emplace_back(MadeOperand{dtype, numbers, NumberPattern{dtype, numbers, tokens_}})
        .pattern;
  }

 private:
  struct MadeOperand {
    DType dtype;
    Numbers numbers;
    NumberPattern pattern;
  };
  std::int64_t tokens_;
  std::vector<MadeOperand> made_;
};

}  // namespace

Operands::Operands(executor::Device& device, const models::Block& block, int copies,
                   std::int64_t tokens)
    : device_{device}, views_(static_cast<std::size_t>(copies)) {
  const Bytes each = footprint(block);
  arena_ = allocated(device, std::max(each * copies, Bytes{lies_on}));
  std::byte* const begin = arena_.get();
  for (int copy = 0; copy < copies; ++copy) place(block, copy, begin + each.count() * copy);
  fill_first(block, tokens);
  for (int copy = 1; copy < copies; ++copy) {
    device.copy(begin, begin + each.count() * copy, each, models::Lane::compute);
  }
}

void Operands::place(const models::Block& block, int copy, std::byte* memory) {
  for (const Operand& operand : block.operands) {
    views_[static_cast<std::size_t>(copy)].push_back(
        {.data = memory, .dtype = operand.dtype, .shape = operand.shape});
    memory += room_on_device(operand).count();
    if (copy == 0) rooms_.push_back(room_on_device(operand));
  }
}

/// Fills the first copy. Scales of tensors are written last, because a write does not wait for work
/// enqueued before it.
void Operands::fill_first(const models::Block& block, std::int64_t tokens) {
  Patterns patterns{tokens};
  for (std::size_t id = 0; id < block.operands.size(); ++id) {
    const Operand& operand = block.operands[id];
    const Numbers numbers = numbers_of(block, static_cast<OperandId>(id));
    fill(device_, views_[0][id].data, room_on_device(operand), patterns.of(operand.dtype, numbers));
  }
  device_.finish();
  for (const View& view : views_[0]) {
    std::byte* scale = nullptr;  // of the tensor
    if (view.dtype == DType::fp8) {
      scale = reinterpret_cast<std::byte*>(executor::fp8_inverse_scale(view));
    }
    if (view.dtype == DType::uint8) scale = view.data + executor::block_scales_offset(view.shape);
    if (scale != nullptr) device_.write(&fp8_inverse, scale, Bytes{sizeof fp8_inverse});
  }
}

BoundOperation Operands::bound(const Operation& op, int copy) const {
  BoundOperation made{.operation = &op, .reads = {}, .writes = {}};
  for (const auto id : op.reads) made.reads.push_back(view(copy, id));
  for (const auto id : op.writes) made.writes.push_back(view(copy, id));
  return made;
}

void Operands::restore(const Operation& op) const {
  ensure(copies() > 1, "there is a copy to restore from");
  for (const auto id : op.writes) {
    device_.copy(view(1, id).data, view(0, id).data, rooms_[id], models::Lane::compute);
  }
}

void BoundOperation::run(executor::Device& device) const {
  executor::Place place;
  place.loss_scale = 1e-3;
  if (operation->attention().seq > 0) place.sequence = operation->attention().seq;
  device.run({.operation = operation,
              .reads = reads,
              .writes = writes,
              .place = place,
              .adam = {.learning_rate = 1e-6}});
}

Bytes footprint(const models::Block& block) {
  Bytes sum{};
  for (const Operand& each : block.operands) sum += room_on_device(each);
  return sum;
}

models::Block single(const models::Block& block, const Operation& op) {
  models::Block made;
  made.name = block.name + " " + op.name;
  made.operations.push_back(op);
  Operation& own = made.operations.front();
  own.after.clear();
  std::vector<models::OperandId> taken;
  const auto renumber = [&](std::vector<models::OperandId>& ids) {
    for (models::OperandId& id : ids) {
      const auto at = std::ranges::find(taken, id) - taken.begin();
      if (at == static_cast<std::ptrdiff_t>(taken.size())) {
        taken.push_back(id);
        made.operands.push_back(block.operands[id]);
      }
      id = static_cast<models::OperandId>(at);
    }
  };
  renumber(own.reads);
  renumber(own.writes);
  own.needs.clear();
  own.makes.clear();
  return made;
}

}  // namespace orrery::calibrate
