#pragma once
// The groups of rows that models/plan/fields.cpp joins into one table, and the readers and writers
// that rows of several groups use.

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "models/plan/fields.hpp"

namespace orrery::models {

std::span<const PlanField> fields_of_axes();
std::span<const PlanField> fields_of_experts();
std::span<const PlanField> fields_of_batch();
std::span<const PlanField> fields_of_savers();
std::span<const PlanField> fields_of_gradients();

inline constexpr std::int64_t most_layers = 1 << 12;     // and so most stages and chunks
inline constexpr std::int64_t most_lora_rank = 1 << 14;  // also of PowerSGD's factors
inline constexpr std::int64_t most_seq_len = std::int64_t{1} << 30;

template <const auto& array>
std::vector<std::string> words_in() {
  const auto all = texts(array);
  return {all.begin(), all.end()};
}

template <auto member, const auto& array>
void read_word(const Node& value, Plan& plan) {
  plan.*member = value.word(array);
}
template <auto member, const auto& array>
Json write_word(const Plan& plan) {
  return word_of(array, plan.*member);
}

/// Reads a list of words without repetition.
template <auto member, const auto& array>
void read_some(const Node& list, Plan& plan) {
  auto& set = plan.*member;
  set = {};
  for (const Node& each : list.elements()) {
    const auto value = each.word(array);
    if (set.has(value)) each.fail("is listed twice");
    set.add(value);
  }
  if (set.empty()) list.fail("is empty; leave it out to use the default");
}
template <auto member, const auto& array>
Json words_of_set(const Plan& plan) {
  Json list = Json::array();
  for (const auto& each : array) {
    if ((plan.*member).has(each.value)) list.push_back(each.text);
  }
  return list;
}

}  // namespace orrery::models
