#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <utility>

#include "models/model/operation_list.hpp"
#include "models/plan/compression.hpp"
#include "models/plan/fields.hpp"
#include "sim/input/units.hpp"

namespace orrery::models {
namespace {

/// Keeps the value of a new Plan, or derives one; returns the text of the assumption.
std::string default_of(const PlanField& field, Plan& plan, const PlanBasis& basis) {
  if (field.derive) return field.derive(plan, basis);
  if (field.by_default != PlanField::Default::reported) return {};
  return fmt::format("not stated; {} assumed", field.text(plan));
}

/// Words of other tools for fields, in errors.
constexpr std::array<std::pair<std::string_view, std::string_view>, 14> other_words{
    {{"tp", "tensor"},
     {"pp", "pipeline"},
     {"dp", "data"},
     {"cp", "context"},
     {"ep", "expert"},
     {"etp", "expert_tensor"},
     {"sp", "sequence"},
     {"vp", "virtual_stages"},
     {"vpp", "virtual_stages"},
     {"mbs", "micro_batch"},
     {"gbs", "global_batch"},
     {"fsdp", "zero"},
     {"seq", "seq_len"},
     {"dtype", "precision"}}};

void check_keys(const Node& plan) {
  std::vector<std::string_view> keys;
  for (const PlanField& each : plan_fields()) keys.push_back(each.key);
  for (const auto& [word, field] : other_words) {
    const auto member = plan.is_object() ? plan.find(word) : std::nullopt;
    if (!member) continue;
    member->fail(
        fmt::format("unknown key; did you mean '{}'? accepted: {}", field, fmt::join(keys, ", ")));
  }
  plan.only(keys);
}

}  // namespace

namespace {

/// What a list of operations says of a plan that leaves it open.
void take_from_list(const Node& given, const Model& model, Plan& plan,
                    std::vector<std::string>& assumptions) {
  const OperationList& list = *model.list;
  const auto take = [&](std::string_view key, const std::string& text, auto set) {
    if (given.has(key)) return;
    const std::string head = fmt::format("{}/{}:", given.pointer(), key);
    std::erase_if(assumptions, [&](const std::string& each) { return each.starts_with(head); });
    set();
    assumptions.push_back(fmt::format("{} not stated; {} assumed, as the list says", head, text));
  };
  if (!list.trains()) {
    plan.batch.micro = 1;
    take("precision", "fp32", [&] { plan.formats.precision = Precision::fp32; });
    const auto silent = [&](std::string_view key) {
      const std::string head = fmt::format("{}/{}:", given.pointer(), key);
      std::erase_if(assumptions, [&](const std::string& each) { return each.starts_with(head); });
    };
    for (const char* key : {"micro_batch", "global_batch", "seq_len", "recompute", "zero"}) {
      silent(key);
    }
    if (!given.has("global_batch")) plan.batch.global = plan.data;
    return;
  }
  if (list.batch() > 0) {
    take("micro_batch", fmt::format("{}", list.batch()), [&] { plan.batch.micro = list.batch(); });
    take("global_batch", fmt::format("{}, data x micro_batch", plan.data * plan.batch.micro),
         [&] { plan.batch.global = plan.data * plan.batch.micro; });
  }
  const auto sums = list.gradient_sums();
  if (!sums) return;
  const bool narrow =
      plan.formats.precision == Precision::bf16 || plan.formats.precision == Precision::fp16;
  if (narrow) {
    take("gradient_dtype", fmt::format("{} bits", 8 * sums->width), [&] {
      plan.formats.gradient = sums->width == 4 ? GradientFormat::fp32 : GradientFormat::bf16;
    });
  }
  if (sums->bucket > 0) {
    take("bucket", format(Bytes{sums->bucket}),
         [&] { plan.sharding.bucket = Bytes{sums->bucket}; });
  }
  take("overlap", sums->overlaps ? "true" : "false",
       [&] { plan.overlap.gradients = sums->overlaps; });
}

}  // namespace

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
  if (model.list) take_from_list(plan, model, read, assumptions);
  return read;
}

std::int64_t kept_by_top_k(const Plan& plan, std::int64_t elements) {
  const double kept = plan.compression.share * static_cast<double>(elements);
  return std::max<std::int64_t>(1, static_cast<std::int64_t>(kept));
}

ByteShare byte_share(const Plan& plan, std::int64_t elements) {
  return {(elements + plan.data - 1) / plan.data};
}

LowRankShape low_rank_shape(const Plan& plan, std::int64_t elements) {
  auto columns = static_cast<std::int64_t>(std::sqrt(static_cast<double>(elements)));
  while (columns * columns < elements) ++columns;
  const std::int64_t rows = (elements + columns - 1) / columns;
  return {rows, columns, std::min({plan.compression.rank, rows, columns})};
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
