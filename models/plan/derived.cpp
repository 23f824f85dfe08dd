#include "models/plan/derived.hpp"

#include <algorithm>
#include <cmath>

#include "models/plan/precision_formats.hpp"

namespace orrery::models {

hardware::DType activation_dtype(const Plan& plan) {
  return plan.formats.kbit_upcast ? hardware::DType::fp32 : storage_dtype(plan.formats.precision);
}

ContextSplit context_split(const Plan& plan) {
  const bool grouped = plan.context_exchange.form == ContextForm::hierarchical;
  const bool whole = plan.context_exchange.form == ContextForm::ulysses;
  const std::int64_t heads = whole ? plan.context : grouped ? plan.context_exchange.heads : 1;
  return {heads, plan.context / heads};
}

std::int64_t piece_length(const Plan& plan) {
  const std::int64_t pieces = context_split(plan).pieces;
  if (pieces == 1) return plan.batch.seq_len;
  return plan.batch.seq_len /
         (plan.context_exchange.form == ContextForm::contiguous ? pieces : 2 * pieces);
}

bool attends_within_rank(const AttentionPart& attention, const Plan& plan) {
  return attention.chunk > 0 && piece_length(plan) % attention.chunk == 0;
}

std::int64_t attended_length(const Plan& plan) {
  double sum = 0, squares = 0;
  for (const std::int64_t each : plan.batch.documents) {
    const auto length = static_cast<double>(each);
    sum += length;
    squares += length * length;
  }
  return sum > 0 ? std::max<std::int64_t>(1, std::llround(squares / sum)) : plan.batch.seq_len;
}

std::vector<std::int64_t> documents_of(const Plan& plan) {
  std::vector<std::int64_t> lengths;
  if (plan.batch.documents.empty()) return lengths;
  for (std::int64_t left = plan.batch.seq_len; left > 0; left -= lengths.back()) {
    const std::int64_t next = plan.batch.documents[lengths.size() % plan.batch.documents.size()];
    lengths.push_back(std::min(left, next));
  }
  return lengths;
}

}  // namespace orrery::models
