#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <string>

#include "models/plan/compression.hpp"
#include "models/plan/fields.hpp"

namespace orrery::models {
namespace {

/// Keeps what a new Plan has, or derives it, and says so.
std::string default_of(const PlanField& field, Plan& plan, const PlanBasis& basis) {
  if (field.derive) return field.derive(plan, basis);
  if (field.by_default == PlanField::Default::silent) return {};
  return field.text(plan) + " taken as default";
}

void check_keys(const Node& plan) {
  std::vector<std::string_view> keys;
  for (const PlanField& each : plan_fields()) keys.push_back(each.key);
  for (const UnsimulatedField& each : unsimulated_fields()) keys.push_back(each.key);
  plan.only(keys);
  for (const UnsimulatedField& each : unsimulated_fields()) {
    if (const auto value = plan.find(each.key)) each.refuse(*value);
  }
}

struct PrecisionFormats {
  Precision precision;
  hardware::DType compute, storage, state;
};

using hardware::DType;
constexpr std::array<PrecisionFormats, 10> formats{{
    {Precision::fp32, DType::fp32, DType::fp32, DType::fp32},
    {Precision::tf32, DType::tf32, DType::fp32, DType::fp32},
    {Precision::fp16, DType::fp16, DType::fp16, DType::fp32},
    {Precision::bf16, DType::bf16, DType::bf16, DType::fp32},
    {Precision::fp8, DType::fp8, DType::bf16, DType::fp32},
    {Precision::fp64, DType::fp64, DType::fp64, DType::fp64},
    {Precision::fp8_current, DType::fp8, DType::bf16, DType::fp32},
    {Precision::fp8_block, DType::fp8, DType::bf16, DType::fp32},
    {Precision::mxfp8, DType::fp8, DType::bf16, DType::fp32},
    {Precision::nvfp4, DType::fp4, DType::bf16, DType::fp32},
}};

const PrecisionFormats& formats_of(Precision precision) {
  for (const PrecisionFormats& each : formats) {
    if (each.precision == precision) return each;
  }
  throw ContractError{"a precision has no formats"};
}

}  // namespace

ContextSplit context_split(const Plan& plan) {
  const bool grouped = plan.context_form == ContextForm::hierarchical;
  const bool whole = plan.context_form == ContextForm::ulysses;
  const std::int64_t heads = whole ? plan.context : grouped ? plan.context_heads : 1;
  return {heads, plan.context / heads};
}

DType compute_dtype(Precision precision) {
  return formats_of(precision).compute;
}
DType storage_dtype(Precision precision) {
  return formats_of(precision).storage;
}
DType state_dtype(Precision precision) {
  return formats_of(precision).state;
}

std::int64_t attended_length(const Plan& plan) {
  double sum = 0, squares = 0;
  for (const std::int64_t each : plan.sequence_lengths) {
    const auto length = static_cast<double>(each);
    sum += length;
    squares += length * length;
  }
  return sum > 0 ? std::max<std::int64_t>(1, std::llround(squares / sum)) : plan.seq_len;
}

Plan read_plan(const Node& plan, const Model& model, std::int64_t gpus,
               std::vector<std::string>& assumptions) {
  check_keys(plan);
  const PlanBasis basis{plan, model, gpus};
  Plan read;
  const auto assume = [&](const PlanField& field, const std::string& what) {
    if (what.empty()) return;
    assumptions.push_back(fmt::format("{}/{}: {}", plan.pointer(), field.key, what));
  };
  for (const PlanField& field : plan_fields()) {
    if (const auto value = plan.find(field.key)) {
      field.read_value(*value, read);
    } else {
      assume(field, default_of(field, read, basis));
    }
    if (field.remark) assume(field, field.remark(read, basis));
  }
  return read;
}

std::int64_t kept_by_top_k(const Plan& plan, std::int64_t elements) {
  const double kept = plan.compression_share * static_cast<double>(elements);
  return std::max<std::int64_t>(1, static_cast<std::int64_t>(kept));
}

ByteShare byte_share(const Plan& plan, std::int64_t elements) {
  return {(elements + plan.data - 1) / plan.data};
}

LowRankShape low_rank_shape(const Plan& plan, std::int64_t elements) {
  auto columns = static_cast<std::int64_t>(std::sqrt(static_cast<double>(elements)));
  while (columns * columns < elements) ++columns;
  const std::int64_t rows = (elements + columns - 1) / columns;
  return {rows, columns, std::min({plan.compression_rank, rows, columns})};
}

Json to_json(const Plan& plan) {
  Json json;
  for (const PlanField& field : plan_fields()) {
    Json value = field.json(plan);
    if (!value.is_null()) json[std::string{field.key}] = std::move(value);
  }
  return json;
}

}  // namespace orrery::models
