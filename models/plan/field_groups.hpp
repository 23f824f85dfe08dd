#pragma once
// The groups of rows that models/plan/fields.cpp joins into one table, and the readers and writers
// that rows of several groups use.

#include <cstdint>
#include <span>
#include <string>
#include <type_traits>
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
inline constexpr std::int64_t most_mlp_tiles = 1 << 12;
inline constexpr std::int64_t most_seq_len = std::int64_t{1} << 30;

template <const auto& array>
std::vector<std::string> words_in() {
  const auto all = texts(array);
  return {all.begin(), all.end()};
}

/// Appends the bytes of a value, of a list with its size.
template <class Value>
void add_bytes(const Value& value, std::string& bytes) {
  if constexpr (requires { value.begin(); }) {
    add_bytes(value.size(), bytes);
    for (const auto& each : value) add_bytes(each, bytes);
  } else {
    static_assert(std::is_trivially_copyable_v<Value>);
    bytes.append(reinterpret_cast<const char*>(&value), sizeof value);
  }
}
template <auto... path>
void key_of(const Plan& plan, std::string& bytes) {
  add_bytes(member_at<path...>(plan), bytes);
}

/// A member that is an integer from `least` to `most`.
template <auto... path>
constexpr PlanValue count_at(std::int64_t least, std::int64_t most) {
  return {.least = least,
          .most = most,
          .count = [](const Plan& plan) -> std::int64_t { return member_at<path...>(plan); },
          .read =
              [](const Node& value, Plan& plan, const PlanValue& own) {
                member_at<path...>(plan) = value.integer(own.least, own.most);
              },
          .write = [](const Plan& plan) { return Json(member_at<path...>(plan)); },
          .key = key_of<path...>};
}
/// A member that is true or false.
template <auto... path>
constexpr PlanValue flag_at() {
  return {.kind = PlanValue::Kind::flag,
          .read = [](const Node& value, Plan& plan,
                     const PlanValue&) { member_at<path...>(plan) = value.as<bool>(); },
          .write = [](const Plan& plan) { return Json(member_at<path...>(plan)); },
          .key = key_of<path...>};
}
/// A member of an enumeration, read and written as its words.
template <const auto& array, auto... path>
constexpr PlanValue word_at() {
  return {.kind = PlanValue::Kind::word,
          .words = words_in<array>,
          .read = [](const Node& value, Plan& plan,
                     const PlanValue&) { member_at<path...>(plan) = value.word(array); },
          .write = [](const Plan& plan) { return Json(word_of(array, member_at<path...>(plan))); },
          .key = key_of<path...>};
}

/// Reads a list of words without repetition.
template <const auto& array, auto... path>
void read_some(const Node& list, Plan& plan, const PlanValue&) {
  auto& set = member_at<path...>(plan);
  set = {};
  for (const Node& each : list.elements()) {
    const auto value = each.word(array);
    if (set.has(value)) each.fail("is listed twice");
    set.add(value);
  }
  if (set.empty()) list.fail("is empty; leave it out to use the default");
}
template <const auto& array, auto... path>
Json words_of_set(const Plan& plan) {
  Json list = Json::array();
  for (const auto& each : array) {
    if (member_at<path...>(plan).has(each.value)) list.push_back(each.text);
  }
  return list;
}

/// A member that is a set of words, read and written as a list.
template <const auto& array, auto... path>
constexpr PlanValue words_at() {
  return {.kind = PlanValue::Kind::word_list,
          .words = words_in<array>,
          .read = read_some<array, path...>,
          .write = words_of_set<array, path...>,
          .key = key_of<path...>};
}

}  // namespace orrery::models
