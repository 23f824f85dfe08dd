#pragma once
// Readers and writers that rows of models/plan/fields.cpp name: of words and lists of words, and of
// what fine-tuning and memory savers choose, which are not written where they do not apply.

#include <string>
#include <vector>

#include "models/plan/fields.hpp"

namespace orrery::models {

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

/// A list of words; none of them twice.
template <auto member, const auto& array>
void read_some(const Node& list, Plan& plan) {
  auto& set = plan.*member;
  set = {};
  for (const Node& each : list.elements()) {
    const auto value = each.word(array);
    if (set.has(value)) each.fail("stands twice in the list");
    set.add(value);
  }
  if (set.empty()) list.fail("is empty; leave it out for the usual ones");
}
template <auto member, const auto& array>
Json words_of_set(const Plan& plan) {
  Json list = Json::array();
  for (const auto& each : array) {
    if ((plan.*member).has(each.value)) list.push_back(each.text);
  }
  return list;
}

std::string derive_lora_rank(Plan& plan, const PlanBasis& basis);
std::string derive_lora_targets(Plan& plan, const PlanBasis& basis);
Json write_lora_rank(const Plan& plan);
Json write_lora_targets(const Plan& plan);
Json write_lora_dropout(const Plan& plan);
Json write_recompute_modules(const Plan& plan);
Json write_recompute_layers(const Plan& plan);
Json write_recompute_every(const Plan& plan);
Json write_moments(const Plan& plan);
Json write_task(const Plan& plan);
void read_sequence_lengths(const Node& list, Plan& plan);
Json write_sequence_lengths(const Plan& plan);

}  // namespace orrery::models
