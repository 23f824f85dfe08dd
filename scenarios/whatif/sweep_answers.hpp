#pragma once
// The answers of a sweep's variants, with nothing found twice. What a variant needs is kept by the
// listed values that it depends on:
//   shape    all values but rates and money: question, Program, memory peaks
//   rates    numbers of the cluster that neither a plan nor a Program depends on (rate_groups.hpp):
//            priced and evaluated anew on the shape's Program
//   money    the price of a GPU hour, and tokens: the answer of the same shape and rates, with
//            other dollars
// An answer is that of the variant simulated alone, to the last bit. Where sharing would not be
// exact (links shared by events, stages cut by time, a value that is refused), the variant is
// simulated alone.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "models/prediction/lowered_step.hpp"
#include "scenarios/scenario/scenario.hpp"
#include "scenarios/whatif/once_map.hpp"
#include "scenarios/whatif/sweep_row.hpp"

namespace orrery::scenarios {

/// What a sweep asks: a scenario with every combination of listed values.
struct SweepQuestions {
  Scenario base;
  SweepGrid grid;
  WhatIfRequest request;  // the same for all variants
};

/// May be asked by many threads at once.
class SweepAnswers {
 public:
  /// questions  outlives it
  explicit SweepAnswers(const SweepQuestions& questions);

  /// The answer of a variant. InputError and ContractError are answers.
  SweepRow row(std::uint64_t index);

  /// The same without anything shared: what `row` must equal.
  static SweepRow row_alone(const SweepQuestions& questions, std::uint64_t index);

 private:
  struct Shape;
  struct Priced;
  using Digits = std::vector<std::uint32_t>;
  /// What a list changes.
  enum class Part : std::uint8_t { shape, fabric, node, site, price, tokens };
  static constexpr std::size_t parts = 6;

  Part part_of(const std::string& pointer) const;
  /// Whether variants may have a member `run`, whose price is not the cluster's.
  bool states_run() const;
  /// The digits of the lists that `among` holds for, as one number.
  template <class Among>
  std::uint64_t key_of(const Digits& digits, const Among& among) const;
  std::vector<std::pair<std::string, Json>> changes_of(const Digits& digits,
                                                       const std::vector<char>& among) const;
  std::optional<SweepRow> shared_row(const Digits& digits);
  /// Null where one of the listed values cannot be read.
  std::shared_ptr<const Scenario> on_cluster(const Digits& digits);
  std::shared_ptr<const hardware::Cluster> rates_of(Part part, const Digits& digits);
  std::shared_ptr<const Shape> shape_of(const Digits& digits);
  std::pair<Shape, std::size_t> made_shape(const Digits& digits);
  Priced priced(const Shape& shape, const std::vector<Part>& groups,
                const std::vector<std::shared_ptr<const hardware::Cluster>>& rates) const;
  std::optional<double> tokens_of(const Digits& digits, const Shape& shape);

  const SweepQuestions& questions_;
  std::vector<Part> part_of_list_;
  std::vector<char> in_cluster_shape_, outside_cluster_;    // by list
  std::vector<Part> groups_;                                // rates that are listed
  bool money_ = false;                                      // a price is listed
  std::vector<std::vector<std::optional<double>>> tokens_;  // by list and value
  OnceMap<std::shared_ptr<const Scenario>> clusters_;
  OnceMap<std::shared_ptr<const hardware::Cluster>> rates_;
  OnceMap<Shape> shapes_;
  OnceMap<Priced> answers_;
};

}  // namespace orrery::scenarios
