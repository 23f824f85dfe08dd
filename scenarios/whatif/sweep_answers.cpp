#include "scenarios/whatif/sweep_answers.hpp"

#include <algorithm>
#include <cmath>

#include "hardware/catalogue.hpp"
#include "scenarios/whatif/rate_groups.hpp"
#include "sim/errors.hpp"

namespace orrery::scenarios {

namespace {

constexpr std::size_t bytes_of_mib = std::size_t{1} << 20;

/// What kept values may occupy: more in a sweep of many variants.
std::size_t shapes_budget(std::uint64_t variants) {
  constexpr std::uint64_t of_each = 1024;
  return static_cast<std::size_t>(
      std::clamp<std::uint64_t>(variants * of_each, 8 * bytes_of_mib, 64 * bytes_of_mib));
}

SweepRow row_of_refusal(const InputError& error) {
  SweepRow row;
  row.error = error.what();
  return row;
}

SweepRow row_of_fault(const ContractError& error) {
  SweepRow row;
  row.error = error.what();
  row.our_fault = true;
  return row;
}

SweepRow answered_row(const models::Prediction& found, std::int64_t gpus) {
  SweepRow row;
  row.figures = found;
  row.uncertainty = found.uncertainty;
  row.memory = found.memory.at(found.fullest).total;
  row.gpus = gpus;
  return row;
}

/// Whether every value is a text or a number.
bool lists_scalars(const ValueList& list) {
  return std::ranges::all_of(
      list.values, [](const Json& value) { return value.is_string() || value.is_number(); });
}

}  // namespace

/// What variants with the same values of all lists but rates and money share.
struct SweepAnswers::Shape {
  SweepRow refused;    // its error: there is nothing to price
  bool alone = false;  // nothing can be shared
  models::Question question;
  models::LoweredStep lowered;
  std::optional<double> tokens;
};

/// The answer of a shape at some rates.
struct SweepAnswers::Priced {
  SweepRow row;
};

bool SweepAnswers::states_run() const {
  return questions_.base.json().contains("run") ||
         std::ranges::any_of(questions_.grid.lists(), [](const ValueList& list) {
           return list.pointer == "/run" || list.pointer.starts_with("/run/");
         });
}

SweepAnswers::Part SweepAnswers::part_of(const std::string& pointer) const {
  if (pointer == "/tokens") return Part::tokens;
  const Json& cluster = questions_.base.json().at("cluster");
  const auto group = rate_group(pointer, cluster);
  if (!group) return Part::shape;
  switch (*group) {
    case RateGroup::fabric:
      return Part::fabric;
    case RateGroup::node:
      return Part::node;
    case RateGroup::site:
      return Part::site;
    case RateGroup::price:
      return states_run() ? Part::shape : Part::price;  // a run's own price replaces the cluster's
  }
  throw ContractError{"a group outside its enumeration"};
}

SweepAnswers::SweepAnswers(const SweepQuestions& questions)
    : questions_{questions},
      clusters_{16 * bytes_of_mib},
      rates_{32 * bytes_of_mib},
      shapes_{shapes_budget(questions.grid.variants())},
      answers_{32 * bytes_of_mib} {
  for (const ValueList& list : questions_.grid.lists()) {
    Part part = part_of(list.pointer);
    if (part != Part::tokens && part != Part::shape && !lists_scalars(list)) part = Part::shape;
    part_of_list_.push_back(part);
    const bool cluster = list.pointer == "/cluster" || list.pointer.starts_with("/cluster/");
    in_cluster_shape_.push_back(cluster && part == Part::shape);
    outside_cluster_.push_back(!cluster && part == Part::shape);
    std::vector<std::optional<double>>& tokens = tokens_.emplace_back();
    if (part == Part::tokens) {
      for (const Json& value : list.values) {
        try {
          tokens.push_back(questions_.base.with_values({{list.pointer, value}}).tokens());
        } catch (const InputError&) {
          tokens.emplace_back();
        }
      }
    }
    money_ = money_ || part == Part::price || part == Part::tokens;
  }
  for (const Part part : {Part::fabric, Part::node, Part::site, Part::price}) {
    if (std::ranges::count(part_of_list_, part) > 0) groups_.push_back(part);
  }
}

template <class Among>
std::uint64_t SweepAnswers::key_of(const Digits& digits, const Among& among) const {
  std::uint64_t key = 0;
  for (std::size_t i = 0; i < digits.size(); ++i) {
    if (among(i)) key = key * questions_.grid.lists()[i].values.size() + digits[i];
  }
  return key;
}

std::vector<std::pair<std::string, Json>> SweepAnswers::changes_of(
    const Digits& digits, const std::vector<char>& among) const {
  std::vector<std::pair<std::string, Json>> changes;
  const std::vector<ValueList>& lists = questions_.grid.lists();
  for (std::size_t i = 0; i < lists.size(); ++i) {
    if (among[i] != 0) changes.emplace_back(lists[i].pointer, lists[i].values[digits[i]]);
  }
  return changes;
}

SweepRow SweepAnswers::row_alone(const SweepQuestions& questions, std::uint64_t index) {
  try {
    const auto changes = questions.grid.changes(questions.grid.digits(index));
    const Scenario scenario = changes.empty() ? questions.base : questions.base.replace(changes);
    models::Question question = scenario.question();
    if (questions.request.headroom) question.headroom = *questions.request.headroom;
    SweepRow row = answered_row(models::predict(question), question.plan.gpus());
    row.tokens = questions.request.tokens ? questions.request.tokens : scenario.tokens();
    return row;
  } catch (const InputError& error) {
    return row_of_refusal(error);
  } catch (const ContractError& error) {
    return row_of_fault(error);
  }
}

SweepRow SweepAnswers::row(std::uint64_t index) {
  auto shared = shared_row(questions_.grid.digits(index));
  return shared ? *std::move(shared) : row_alone(questions_, index);
}

std::shared_ptr<const Scenario> SweepAnswers::on_cluster(const Digits& digits) {
  const std::uint64_t key =
      key_of(digits, [&](std::size_t i) { return in_cluster_shape_[i] != 0; });
  return *clusters_.get(key, [&] {
    using Kept = std::shared_ptr<const Scenario>;
    constexpr std::size_t bytes = 160 * 1024;  // of an expanded scenario as JSON
    Kept made;
    try {
      const auto changes = changes_of(digits, in_cluster_shape_);
      made = std::make_shared<const Scenario>(
          questions_.base.with_values(changes).with_cluster_read());
    } catch (const InputError&) {
      // Refused: each of its variants says why.
    }
    return std::pair{std::make_shared<const Kept>(std::move(made)), bytes};
  });
}

std::shared_ptr<const hardware::Cluster> SweepAnswers::rates_of(Part part, const Digits& digits) {
  const auto among = [&](std::size_t i) {
    return in_cluster_shape_[i] != 0 || part_of_list_[i] == part;
  };
  const std::uint64_t key = key_of(digits, among) * parts + static_cast<std::uint64_t>(part);
  return *rates_.get(key, [&] {
    using Kept = std::shared_ptr<const hardware::Cluster>;
    constexpr std::size_t bytes = 8 * 1024;  // of a cluster with its curves
    std::vector<char> chosen;
    for (std::size_t i = 0; i < digits.size(); ++i) chosen.push_back(among(i) ? 1 : 0);
    Kept made;
    try {
      const Scenario changed = questions_.base.with_values(changes_of(digits, chosen));
      const Json& cluster = changed.json().at("cluster");
      made = std::make_shared<const hardware::Cluster>(
          hardware::read_cluster(Node{cluster, changed.file(), "/cluster"}));
    } catch (const InputError&) {
    }
    return std::pair{std::make_shared<const Kept>(std::move(made)), bytes};
  });
}

std::pair<SweepAnswers::Shape, std::size_t> SweepAnswers::made_shape(const Digits& digits) {
  Shape shape;
  constexpr std::size_t least = 4096;
  const auto cluster = on_cluster(digits);
  if (!cluster || (!groups_.empty() && !rates_are_apart(cluster->json().at("cluster")))) {
    shape.alone = true;
    return {std::move(shape), least};
  }
  try {
    const Scenario scenario = cluster->with_values(changes_of(digits, outside_cluster_))
                                  .with_derived_data(questions_.grid.changes(digits));
    shape.question = scenario.question();
    if (questions_.request.headroom) shape.question.headroom = *questions_.request.headroom;
    shape.tokens = scenario.tokens();
    if (!models::lowers_once(shape.question)) {
      shape.alone = true;
      return {std::move(shape), least};
    }
    shape.lowered = models::lower_step(shape.question);
  } catch (const InputError& error) {
    shape.refused = row_of_refusal(error);
  } catch (const ContractError& error) {
    shape.refused = row_of_fault(error);
  }
  if (!shape.lowered.program) return {std::move(shape), least};
  constexpr std::size_t of_question = 24 * 1024;
  const std::size_t bytes = shape.lowered.bytes() + of_question;
  return {std::move(shape), bytes};
}

std::shared_ptr<const SweepAnswers::Shape> SweepAnswers::shape_of(const Digits& digits) {
  const auto among = [&](std::size_t i) { return part_of_list_[i] == Part::shape; };
  return shapes_.get(key_of(digits, among), [&] {
    auto [shape, bytes] = made_shape(digits);
    return std::pair{std::make_shared<const Shape>(std::move(shape)), bytes};
  });
}

SweepAnswers::Priced SweepAnswers::priced(
    const Shape& shape, const std::vector<Part>& groups,
    const std::vector<std::shared_ptr<const hardware::Cluster>>& rates) const {
  const auto group_of = [](Part part) {
    return part == Part::fabric ? RateGroup::fabric
           : part == Part::node ? RateGroup::node
           : part == Part::site ? RateGroup::site
                                : RateGroup::price;
  };
  try {
    if (groups.empty()) {
      return {
          answered_row(models::predict(shape.question, shape.lowered), shape.question.plan.gpus())};
    }
    models::Question question = shape.question;
    for (std::size_t i = 0; i < groups.size(); ++i) {
      take_rates(group_of(groups[i]), *rates[i], question.cluster);
    }
    return {answered_row(models::predict(question, shape.lowered), question.plan.gpus())};
  } catch (const InputError& error) {
    return {row_of_refusal(error)};
  } catch (const ContractError& error) {
    return {row_of_fault(error)};
  }
}

std::optional<double> SweepAnswers::tokens_of(const Digits& digits, const Shape& shape) {
  std::optional<double> tokens = shape.tokens;
  for (std::size_t i = 0; i < digits.size(); ++i) {
    if (part_of_list_[i] == Part::tokens) tokens = tokens_[i][digits[i]];
  }
  return questions_.request.tokens ? questions_.request.tokens : tokens;
}

std::optional<SweepRow> SweepAnswers::shared_row(const Digits& digits) {
  for (std::size_t i = 0; i < digits.size(); ++i) {
    if (part_of_list_[i] == Part::tokens && !tokens_[i][digits[i]]) return std::nullopt;
  }
  std::vector<std::shared_ptr<const hardware::Cluster>> rates;
  for (const Part part : groups_) {
    rates.push_back(rates_of(part, digits));
    if (!rates.back()) return std::nullopt;
  }
  const std::shared_ptr<const Shape> shape = shape_of(digits);
  if (shape->alone) return std::nullopt;
  if (!shape->lowered.program) return shape->refused;
  SweepRow row;
  if (!money_) {
    row = priced(*shape, groups_, rates).row;
  } else {
    const auto among = [&](std::size_t i) {
      return part_of_list_[i] != Part::price && part_of_list_[i] != Part::tokens;
    };
    constexpr std::size_t bytes = 512;
    row = answers_
              .get(key_of(digits, among),
                   [&] {
                     return std::pair{
                         std::make_shared<const Priced>(priced(*shape, groups_, rates)), bytes};
                   })
              ->row;
    const bool listed = !groups_.empty() && groups_.back() == Part::price;
    if (listed && row.error.empty()) {
      const auto& price = rates.back()->price_per_gpu_hour;
      row.figures.cost.reset();
      if (price) {
        row.figures.cost = (*price * static_cast<double>(row.gpus)) * row.figures.step;
        if (!std::isfinite(row.figures.cost->count())) return std::nullopt;
      }
    } else if (listed && !row.our_fault) {
      return std::nullopt;  // may be of the price
    }
  }
  row.tokens = tokens_of(digits, *shape);
  return row;
}

}  // namespace orrery::scenarios
