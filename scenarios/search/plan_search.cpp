#include "scenarios/search/plan_search.hpp"

#include <algorithm>
#include <numeric>
#include <tuple>
#include <utility>

#include "hardware/rental.hpp"
#include "sim/errors.hpp"

namespace orrery::scenarios {

using models::Estimate;

models::Question question_of(const PlanQuery& query, const PlacedPlan& placed) {
  models::Question question{query.model,    placed.plan, query.cluster,
                            query.software, {},          query.headroom};
  hardware::set_nodes(question.cluster, placed.nodes);
  return question;
}

namespace {

bool is_tight(const Estimate& estimate) {
  return estimate.fit == models::Fit::tight;
}

std::int64_t with_equals(const Candidate& each) {
  return 1 + static_cast<std::int64_t>(each.equals.size());
}

}  // namespace

std::int64_t PlanAnswer::fits() const {
  return std::accumulate(
      fitting.begin(), fitting.end(), std::int64_t{0},
      [](std::int64_t sum, const Candidate& each) { return sum + with_equals(each); });
}

std::int64_t PlanAnswer::tight() const {
  return std::accumulate(fitting.begin(), fitting.end(), std::int64_t{0},
                         [](std::int64_t sum, const Candidate& each) {
                           return sum + (is_tight(each.estimate) ? with_equals(each) : 0);
                         });
}

namespace {

/// Estimates plans; each thread has its own question, of which only the plan changes.
class Estimator {
 public:
  Estimator(const PlanQuery& query, unsigned members)
      : questions_(members, question_of(query, {{}, query.cluster.nodes})) {}

  Estimate operator()(const PlacedPlan& placed, unsigned member) {
    models::Question& question = questions_[member];
    question.plan = placed.plan;
    hardware::set_nodes(question.cluster, placed.nodes);
    return models::estimate(question);
  }

 private:
  std::vector<models::Question> questions_;
};

Bytes lacking(const models::OutOfMemory& found) {
  return found.needed - found.available;
}

class Search {
 public:
  Search(const PlanQuery& query, const Objective& objective, const Workers& workers,
         Recomputations which)
      : query_{query},
        objective_{objective},
        workers_{workers},
        which_{which},
        estimator_{query, workers.size()} {}

  PlanAnswer run() {
    PlanSpace space = enumerate_plans(query_, objective_.extent);
    answer_.conflicting = space.conflicting;
    answer_.considered = static_cast<std::int64_t>(space.plans.size());
    set_aside_by_sizes(std::move(space.plans));
    estimate_all();
    look_for_nearer_misses();
    order();
    return std::move(answer_);
  }

 private:
  struct Large {
    PlacedPlan placed;
    Bytes least{};
  };

  void set_aside_by_sizes(std::vector<PlacedPlan> all) {
    for (PlacedPlan& each : all) {
      const Bytes least = least_memory(query_, each.plan);
      if (least > query_.cluster.gpu().memory) {
        large_.push_back({std::move(each), least});
      } else {
        plans_.push_back(std::move(each));
      }
    }
    answer_.too_large = answer_.too_large_by_sizes = static_cast<std::int64_t>(large_.size());
  }

  /// Start indices of groups of plans that differ only in recomputation, the least of it first.
  /// With Recomputations::all every plan is a group of its own.
  std::vector<std::size_t> beginnings() const {
    std::vector<std::size_t> found;
    for (std::size_t i = 0; i < plans_.size(); ++i) {
      const bool first = plans_[i].plan.recompute == models::Recompute::none;
      if (first || which_ == Recomputations::all) found.push_back(i);
    }
    found.push_back(plans_.size());
    return found;
  }

  void estimate_all() {
    const std::vector<std::size_t> begin = beginnings();
    std::vector<std::optional<Estimate>> found(plans_.size());
    answer_.stopped = !workers_.work_through(begin.size() - 1, [&](std::size_t g, unsigned member) {
      for (std::size_t i = begin[g]; i < begin[g + 1]; ++i) {
        found[i] = estimator_(plans_[i], member);
        if (found[i]->fit == models::Fit::yes) break;
      }
    });
    for (std::size_t i = 0; i < plans_.size(); ++i) {
      if (found[i]) {
        take(plans_[i], *found[i]);
      } else if (!answer_.stopped) {
        ++answer_.passed_over;
      }
    }
  }

  void take(const PlacedPlan& placed, const Estimate& estimate) {
    if (!estimate.out_of_memory) {
      answer_.fitting.push_back({placed, estimate, {}, {}});
      return;
    }
    ++answer_.too_large;
    miss(placed, *estimate.out_of_memory);
  }

  void miss(const PlacedPlan& placed, const models::OutOfMemory& found) {
    if (!answer_.nearest_miss || lacking(found) < lacking(answer_.nearest_miss->out_of_memory)) {
      answer_.nearest_miss = NearMiss{placed, found};
    }
  }

  /// A plan that was ruled out by its sizes may lack less memory than those that were estimated:
  /// estimates such plans while their lower bound is below the nearest miss.
  void look_for_nearer_misses() {
    std::ranges::stable_sort(large_, {}, &Large::least);
    const Bytes available = query_.cluster.gpu().memory;
    for (const Large& each : large_) {
      if (answer_.nearest_miss &&
          each.least - available >= lacking(answer_.nearest_miss->out_of_memory)) {
        break;
      }
      const Estimate estimate = estimator_(each.placed, 0);
      ensure(estimate.out_of_memory.has_value(), "least_memory is above what a plan needs");
      miss(each.placed, *estimate.out_of_memory);
    }
  }

  /// Sorts plans best first, those that fit tightly last; ties by less memory, then in order of
  /// enumeration, plainest first. Plans with equal step and memory are merged into one candidate.
  void order() {
    const auto rank = [this](const Candidate& each) {
      return std::tuple{is_tight(each.estimate), objective_.measure(each.estimate),
                        each.estimate.memory};
    };
    std::ranges::stable_sort(answer_.fitting, {}, rank);
    std::vector<Candidate> different;
    for (Candidate& each : answer_.fitting) {
      if (!different.empty() && equal(different.back(), each)) {
        different.back().equals.push_back(std::move(each.placed.plan));
      } else {
        different.push_back(std::move(each));
      }
    }
    answer_.fitting = std::move(different);
  }

  static bool equal(const Candidate& a, const Candidate& b) {
    return a.placed.nodes == b.placed.nodes && a.estimate.step == b.estimate.step &&
           a.estimate.memory == b.estimate.memory;
  }

  const PlanQuery& query_;
  const Objective& objective_;
  const Workers& workers_;
  Recomputations which_;
  Estimator estimator_;
  std::vector<PlacedPlan> plans_;
  std::vector<Large> large_;
  PlanAnswer answer_;
};

}  // namespace

PlanAnswer search_plans(const PlanQuery& query, const Objective& objective, const Workers& workers,
                        Recomputations which) {
  if (const auto refused = refusal(query)) throw InputError{refused->pointer, refused->problem};
  return Search{query, objective, workers, which}.run();
}

}  // namespace orrery::scenarios
