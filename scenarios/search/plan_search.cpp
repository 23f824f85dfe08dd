#include "scenarios/search/plan_search.hpp"

#include <algorithm>
#include <iterator>
#include <numeric>
#include <tuple>
#include <utility>

#include "hardware/rental.hpp"
#include "scenarios/search/incumbents.hpp"
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

/// A measure that has to be found, or to be ruled out: of a plan that was not estimated, or of the
/// other refinements of one that was.
struct OpenPlan {
  double bound = 0;  // of the objective
  std::size_t plan = 0;
  bool estimated = false;
};

class Search {
 public:
  Search(const PlanQuery& query, const Objective& objective, const Workers& workers, Wanted wanted)
      : query_{query},
        objective_{objective},
        workers_{workers},
        prunes_{wanted.best != Wanted::every},
        incumbents_{query, wanted},
        estimator_{query, workers.size()} {}

  PlanAnswer run() {
    PlanSpace space = enumerate_plans(query_, objective_.extent);
    answer_.conflicting = space.conflicting;
    answer_.searched = std::move(space.searched);
    answer_.ruled_out = std::move(space.ruled_out);
    for (const PlacedPlan& each : space.plans) answer_.considered += each.refinements;
    set_aside_by_sizes(std::move(space.plans));
    estimate_families();
    estimate_open_plans();
    look_for_nearer_misses();
    order();
    if (!answer_.stopped) {
      answer_.passed_over = answer_.considered - answer_.fits() - answer_.too_large;
    }
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
        answer_.too_large += each.refinements;
        large_.push_back({std::move(each), least});
      } else {
        plans_.push_back(std::move(each));
      }
    }
    answer_.too_large_by_sizes = answer_.too_large;
  }

  /// Start indices of families, and the end.
  std::vector<std::size_t> beginnings() const {
    std::vector<std::size_t> found;
    for (std::size_t i = 0; i < plans_.size(); ++i) {
      if (i == 0 || plans_[i].family != plans_[i - 1].family) found.push_back(i);
    }
    found.push_back(plans_.size());
    return found;
  }

  /// Estimates the first refinement of each plan, of a family until one fits well.
  void estimate_families() {
    const std::vector<std::size_t> begin = beginnings();
    std::vector<std::optional<Estimate>> found(plans_.size());
    answer_.stopped = !workers_.work_through(begin.size() - 1, [&](std::size_t g, unsigned member) {
      for (std::size_t i = begin[g]; i < begin[g + 1]; ++i) {
        found[i] = estimator_(plans_[i], member);
        if (prunes_ && found[i]->fit == models::Fit::yes) break;
      }
    });
    double bound = 0;
    for (std::size_t i = 0; i < plans_.size(); ++i) {
      if (found[i]) {
        bound = take_first(i, *found[i]);
      } else if (!answer_.stopped) {
        open_.push_back({bound, i, false});
      }
    }
  }

  /// Takes the estimate of a plan's first refinement. Returns a lower bound for all of them.
  double take_first(std::size_t plan, const Estimate& estimate) {
    const PlacedPlan& placed = plans_[plan];
    take(placed, estimate);
    if (estimate.out_of_memory) {
      answer_.too_large += placed.refinements - 1;  // which need the same memory
      return 0;
    }
    const double bound =
        objective_.measure(estimate) * orrery::ratio(estimate.without_dispatch, estimate.step);
    if (placed.refinements > 1) open_.push_back({bound, plan, true});
    return bound;
  }

  /// Estimates open plans, those with the smallest bounds first, in batches of a fixed size, so
  /// that the answer does not depend on the number of threads.
  void estimate_open_plans() {
    constexpr std::size_t batch = 64;
    std::ranges::stable_sort(open_, {}, &OpenPlan::bound);
    for (std::size_t done = 0; done < open_.size() && !answer_.stopped; done += batch) {
      std::vector<PlacedPlan> wanted;
      const std::size_t end = std::min(open_.size(), done + batch);
      for (std::size_t i = done; i < end; ++i) add_wanted(open_[i], wanted);
      if (wanted.empty()) continue;
      std::vector<std::optional<Estimate>> found(wanted.size());
      const Progress go_on = [&](std::size_t, std::size_t) {
        return !workers_.progress || workers_.progress(done, open_.size());
      };
      answer_.stopped = !Workers{workers_.threads, go_on}.work_through(
          wanted.size(), [&](std::size_t i, unsigned m) { found[i] = estimator_(wanted[i], m); });
      for (std::size_t i = 0; i < wanted.size(); ++i) {
        if (found[i]) take(wanted[i], *found[i]);
      }
    }
    const bool ended = !answer_.stopped && !open_.empty();
    if (ended && workers_.progress) workers_.progress(open_.size(), open_.size());
  }

  void add_wanted(const OpenPlan& open, std::vector<PlacedPlan>& wanted) {
    const PlacedPlan& first = plans_[open.plan];
    if (prunes_ && !incumbents_.wants(first, open.bound)) {
      answer_.least_open = std::min(answer_.least_open, open.bound);
      return;
    }
    std::vector<PlacedPlan> all = refinements_of(query_, first);
    std::move(all.begin() + (open.estimated ? 1 : 0), all.end(), std::back_inserter(wanted));
  }

  void take(const PlacedPlan& placed, const Estimate& estimate) {
    if (!estimate.out_of_memory) {
      if (estimate.fit == models::Fit::yes) {
        incumbents_.add(placed, objective_.measure(estimate), estimate.memory);
      }
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
  bool prunes_;
  Incumbents incumbents_;
  Estimator estimator_;
  std::vector<PlacedPlan> plans_;
  std::vector<OpenPlan> open_;
  std::vector<Large> large_;
  PlanAnswer answer_;
};

}  // namespace

PlanAnswer search_plans(const PlanQuery& query, const Objective& objective, const Workers& workers,
                        Wanted wanted) {
  if (const auto refused = refusal(query)) throw InputError{refused->pointer, refused->problem};
  return Search{query, objective, workers, wanted}.run();
}

}  // namespace orrery::scenarios
