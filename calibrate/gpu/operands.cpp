#include "calibrate/gpu/operands.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "executor/cpu/fp8.hpp"
#include "executor/errors.hpp"
#include "executor/grouped.hpp"
#include "executor/half.hpp"
#include "sim/errors.hpp"

namespace orrery::calibrate {

namespace {

using executor::View;
using models::DType;
using models::Operand;
using models::Operation;

constexpr double largest = 0.1;    // of the numbers,
constexpr double smallest = 0.01;  // of positive ones

template <class T>
void append(std::vector<std::byte>& bytes, const T& value) {
  const auto* raw = reinterpret_cast<const std::byte*>(&value);
  bytes.insert(bytes.end(), raw, raw + sizeof value);
}

template <class Half>
void append_half(std::vector<std::byte>& bytes, double value) {
  Half half;
  executor::narrow(static_cast<float>(value), half);
  append(bytes, half.bits);
}

template <class T>
T stored_at(const std::byte* bytes) {
  T value;
  std::memcpy(&value, bytes, sizeof value);
  return value;
}

double value_at(DType dtype, const std::byte* bytes) {
  switch (dtype) {
    case DType::fp64:
      return stored_at<double>(bytes);
    case DType::fp32:
    case DType::tf32:
      return stored_at<float>(bytes);
    case DType::bf16:
      return executor::widened(executor::Bf16{stored_at<std::uint16_t>(bytes)});
    case DType::fp16:
      return executor::widened(executor::Fp16{stored_at<std::uint16_t>(bytes)});
    default:
      throw ContractError{"no floating-point number"};
  }
}

// Of 8 bits: codes of e4m3 from 0.5 to 1.375, of e5m2 from 0.125 to 0.875, under this scale.
constexpr unsigned first_code = 0x30, fp8_codes = 12;
constexpr float fp8_inverse = 0x1p-4F;

/// The same numbers in every run and on every machine.
class Draw {
 public:
  double share() {
    state_ = state_ * 6364136223846793005u + 1442695040888963407u;
    return static_cast<double>(state_ >> 33) / 2147483648.0;
  }

 private:
  std::uint64_t state_ = 1;
};

Bytes room_on_device(const Operand& operand) {
  return std::max(Bytes{executor::room_of(operand)}, Bytes{64});
}

/// A period of an operand as the product sees it; in fp8 its format follows from the product, and
/// what is stored in another is rounded on the way.
class Multiplied {
 public:
  Multiplied(const View& view, const Operation& product, std::size_t read)
      : numbers_(static_cast<std::size_t>(std::min(Pattern::period, view.elements()))) {
    const Pattern stored{view.dtype, Numbers::both_signs, 1};
    const auto count = static_cast<std::int64_t>(numbers_.size());
    if (view.dtype == DType::fp8) {
      decode(stored, executor::fp8_read(product, read));
      return;
    }
    for (std::size_t i = 0; i < numbers_.size(); ++i) {
      numbers_[i] = static_cast<float>(stored.at(static_cast<std::int64_t>(i)));
    }
    if (product.dtype != DType::fp8) return;
    executor::cpu::round_to_fp8(numbers_.data(), count, executor::fp8_read(product, read));
  }

  double at(std::int64_t index) const {
    return numbers_[static_cast<std::size_t>(index % Pattern::period)];
  }

 private:
  void decode(const Pattern& stored, executor::Fp8 format) {
    std::vector<std::byte> bytes = stored.bytes();
    const auto count = static_cast<std::int64_t>(numbers_.size());
    bytes.resize(static_cast<std::size_t>(executor::fp8_scale_offset(count)));
    append(bytes, fp8_inverse);
    executor::cpu::decode({bytes.data(), DType::fp8, {1, 1, count}}, format, numbers_.data());
  }

  std::vector<float> numbers_;
};

/// From one copy of the pattern to as many as fit, each copy as long as all before it.
void fill(executor::Device& device, std::byte* memory, Bytes size, const Pattern& pattern) {
  const auto whole = static_cast<std::int64_t>(pattern.bytes().size());
  std::int64_t done = std::min(whole, size.count());
  device.write(pattern.bytes().data(), memory, Bytes{done});
  while (done < size.count()) {
    const std::int64_t next = std::min(done, size.count() - done);
    device.copy(memory, memory + done, Bytes{next}, models::Queue::compute);
    done += next;
  }
}

}  // namespace

Pattern::Pattern(DType dtype, Numbers numbers, std::int64_t tokens) : dtype_{dtype} {
  Draw draw;
  for (std::int64_t i = 0; i < period; ++i) {
    const double share = draw.share();
    const double value = numbers == Numbers::both_signs ? largest * (2 * share - 1)
                                                        : smallest + (largest - smallest) * share;
    const auto token = static_cast<std::int64_t>(share * static_cast<double>(tokens));
    switch (dtype) {
      case DType::fp64:
        append(bytes_, value);
        break;
      case DType::fp32:
      case DType::tf32:
        append(bytes_, static_cast<float>(value));
        break;
      case DType::bf16:
        append_half<executor::Bf16>(bytes_, value);
        break;
      case DType::fp16:
        append_half<executor::Fp16>(bytes_, value);
        break;
      case DType::int64:
        append(bytes_, token);
        break;
      case DType::int32:
        append(bytes_, static_cast<std::int32_t>(token));
        break;
      case DType::fp8: {
        const double magnitude = std::abs(2 * share - 1);
        const bool negative = numbers == Numbers::both_signs && share < 0.5;
        const unsigned code = first_code + static_cast<unsigned>(magnitude * fp8_codes) % fp8_codes;
        append(bytes_, static_cast<std::uint8_t>(negative ? code | 0x80U : code));
        break;
      }
      default:
        append(bytes_, std::uint8_t{0});
    }
  }
}

double Pattern::at(std::int64_t index) const {
  const std::int64_t size = bits(dtype_) / 8;
  return value_at(dtype_, bytes_.data() + index % period * size);
}

Operands::Operands(executor::Device& device, const models::Block& block, int copies,
                   Numbers numbers, std::int64_t tokens)
    : device_{device}, views_(static_cast<std::size_t>(copies)) {
  std::vector<std::pair<DType, Pattern>> patterns;
  const auto pattern_of = [&](DType dtype) -> const Pattern& {
    for (const auto& [known, pattern] : patterns) {
      if (known == dtype) return pattern;
    }
    patterns.emplace_back(dtype, Pattern{dtype, numbers, std::max<std::int64_t>(1, tokens)});
    return patterns.back().second;
  };
  try {
    for (auto& copy : views_) {
      for (const Operand& operand : block.operands) {
        const Bytes size = room_on_device(operand);
        copy.push_back(
            {.data = device.allocate(size), .dtype = operand.dtype, .shape = operand.shape});
        fill(device, copy.back().data, size, pattern_of(operand.dtype));
        if (operand.dtype != DType::fp8) continue;
        auto* inverse = reinterpret_cast<std::byte*>(executor::fp8_inverse_scale(copy.back()));
        device.write(&fp8_inverse, inverse, Bytes{sizeof fp8_inverse});
      }
    }
  } catch (...) {
    for (const auto& copy : views_) {
      for (const View& view : copy) device.release(view.data);
    }
    throw;
  }
}

Operands::~Operands() {
  for (const auto& copy : views_) {
    for (const View& view : copy) device_.release(view.data);
  }
}

void Operands::run(const Operation& op, int copy, const models::Model& model) const {
  std::vector<View> reads, writes;
  for (const auto id : op.reads) reads.push_back(view(copy, id));
  for (const auto id : op.writes) writes.push_back(view(copy, id));
  executor::Place place;
  place.loss_scale = 1e-3;
  if (op.attention.seq > 0) place.sequence = op.attention.seq;
  device_.run({.operation = &op,
               .reads = reads,
               .writes = writes,
               .model = &model,
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
      const auto at = std::find(taken.begin(), taken.end(), id) - taken.begin();
      if (at == static_cast<std::ptrdiff_t>(taken.size())) {
        taken.push_back(id);
        made.operands.push_back(block.operands[id]);
      }
      id = static_cast<models::OperandId>(at);
    }
  };
  renumber(own.reads);
  renumber(own.writes);
  own.full_sequence.clear();
  return made;
}

double element_of(executor::Device& device, const View& view, std::int64_t index) {
  std::byte bytes[8]{};
  const std::int64_t size = bits(view.dtype) / 8;
  device.read(view.data + index * size, bytes, Bytes{size});
  return value_at(view.dtype, bytes);
}

namespace {

/// The product that is looked at: the only one, or the last expert's that has rows.
executor::ExpertProduct looked_at(const Operation& op) {
  if (op.kind != models::OpKind::grouped_gemm) return {.shape = op.gemm};
  const std::vector<executor::ExpertProduct> all = executor::expert_products(op);
  const auto has_rows = [](const executor::ExpertProduct& each) {
    return each.shape.m > 0 && each.shape.k > 0;
  };
  const auto last = std::find_if(all.rbegin(), all.rend(), has_rows);
  ensure(last != all.rend(), "a product of experts has rows");
  return *last;
}

}  // namespace

/// Terms of a sum of k products are of either sign, 0.1^2 / 3 in the mean square: the sum is some
/// sqrt(k) of that, and so is what another row or column would give. What rounding the operands
/// (tf32) and the result (16 bits) may miss is a hundredth of it.
void check_product(executor::Device& device, const models::Block& block, const Operands& operands,
                   const models::Model& model) {
  const Operation& op = block.operations.front();
  const executor::ExpertProduct of = looked_at(op);
  const auto& [m, n, k, batch, transpose_a, transpose_b, accumulate] = of.shape;
  const View& a = operands.view(0, op.reads[0]);
  const View& b = operands.view(0, op.reads[1]);
  const View& out = operands.view(0, op.writes[0]);
  const Multiplied in_a{a, op, 0}, in_b{b, op, 1};
  const Pattern before{out.dtype, Numbers::both_signs, 1};
  operands.run(op, 0, model);
  device.finish();
  const double usual = std::sqrt(static_cast<double>(k)) * largest * largest / 3;
  for (const std::int64_t part : {std::int64_t{3}, std::int64_t{1}}) {
    const std::int64_t row = (m - 1) / part, column = (n - 1) / (part + 1);
    double expected = accumulate ? before.at(of.c + row * n + column) : 0;
    if (op.reads.size() > 2) {
      const Pattern bias{operands.view(0, op.reads[2]).dtype, Numbers::both_signs, 1};
      expected += bias.at(column);
    }
    for (std::int64_t i = 0; i < k; ++i) {
      expected += in_a.at(of.a + (transpose_a ? i * m + row : row * k + i)) *
                  in_b.at(of.b + (transpose_b ? column * k + i : i * n + column));
    }
    const double found = element_of(device, out, of.c + row * n + column);
    if (!(std::abs(found - expected) <= 0.01 * (usual + std::abs(expected)) + 1e-6)) {
      throw executor::RunFailure{
          executor::Exit::local_failure,
          fmt::format("{} computes {} where {} is right: not timed", op.name, found, expected)};
    }
  }
}

}  // namespace orrery::calibrate
