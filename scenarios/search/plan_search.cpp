#include "scenarios/search/plan_search.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <iterator>
#include <numeric>
#include <queue>
#include <string>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "hardware/prices/rental.hpp"
#include "models/prediction/flops.hpp"
#include "models/prediction/lower_bound.hpp"
#include "scenarios/scenario/data_section.hpp"
#include "scenarios/search/incumbents.hpp"
#include "scenarios/search/space/block_shapes.hpp"
#include "scenarios/search/space/plan_values.hpp"
#include "sim/errors.hpp"

namespace orrery::scenarios {

using models::Estimate;

models::Question question_of(const PlanQuery& query, const PlacedPlan& placed) {
  models::Question question{query.model,    placed.plan, query.cluster,
                            query.software, {},          query.headroom};
  hardware::set_nodes(question.cluster, placed.nodes);
  take_data(query, question);
  return question;
}

void take_data(const PlanQuery& query, models::Question& question) {
  if (!query.data) return;
  const std::string flag = "--data";
  question.data = read_data(Node{*query.data, flag, ""}, question, question.assumptions);
}

std::optional<models::DataAnswer> lane_of(const PlanQuery& query, const PlacedPlan& placed) {
  if (!query.data) return std::nullopt;
  return models::predict(question_of(query, placed)).data;
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
      : query_{query}, questions_(members, question_of(query, {{}, query.cluster.nodes})) {}

  Estimate operator()(const PlacedPlan& placed, unsigned member) {
    return models::estimate(about(placed, member));
  }
  models::EstimateWithJoints with_joints(const PlacedPlan& placed) {
    return models::estimate_with_joints(about(placed, 0));
  }

 private:
  const models::Question& about(const PlacedPlan& placed, unsigned member) {
    models::Question& question = questions_[member];
    question.plan = placed.plan;
    hardware::set_nodes(question.cluster, placed.nodes);
    question.assumptions.clear();
    take_data(query_, question);
    return question;
  }

  const PlanQuery& query_;
  std::vector<models::Question> questions_;
};

Bytes lacking(const models::OutOfMemory& found) {
  return found.needed - found.available;
}

class Search {
 public:
  Search(const PlanQuery& query, const Objective& objective, const Workers& workers, Wanted wanted)
      : query_{query},
        objective_{objective},
        workers_{workers},
        wanted_{wanted},
        incumbents_{query, wanted},
        estimator_{query, workers.size()} {}

  PlanAnswer run() {
    const bool parts = wanted_.against && wanted_.against->extent == Extent::fewer_nodes;
    PlanSpace space = enumerate_plans(query_, parts ? Extent::fewer_nodes : objective_.extent);
    answer_.conflicting = space.conflicting;
    answer_.searched = std::move(space.searched);
    answer_.ruled_out = std::move(space.ruled_out);
    answer_.considered = std::ssize(space.plans);
    recomputes_modules_ = std::ranges::find(answer_.searched, recomputed_modules_key,
                                            &SearchedValues::key) != answer_.searched.end();
    answer_.bounded = true;
    bound(std::move(space.plans));
    bound_variants();
    wanted_.rivals ? estimate_open_plans() : estimate_one_by_one();
    refine_recomputation();
    if (answer_.fitting.empty() && !answer_.stopped) look_for_nearer_misses();
    order();
    answer_.passed_over = std::ssize(answer_.open);
    return std::move(answer_);
  }

 private:
  struct Bounded {
    PlacedPlan placed;
    double measure = 0;  // lower bound of the objective's
    double against = 0;  // the same of Wanted::against
    Bytes memory{};      // lower bound
  };

  /// Where a search is stopped before all plans have a bound, nothing is proven.
  void stop_unless(bool all_bounded) {
    answer_.bounded = answer_.bounded && all_bounded;
    answer_.stopped = answer_.stopped || !all_bounded;
  }

  /// Bounds all plans; those that cannot fit are set aside.
  void bound(std::vector<PlacedPlan> all) {
    const std::vector<PlanBound> least = bounds_of(query_, all, workers_, shapes());
    stop_unless(least.size() == all.size());
    for (std::size_t i = 0; i < least.size(); ++i) {
      const bool fits = least[i].memory <= query_.cluster.gpu().memory;
      if (fits && !partly_recomputed(query_, all[i].plan).empty()) {
        refinable_.push_back({all[i], 0, 0, least[i].memory});
      }
      if (recomputes_modules_ && all[i].plan.recompute.kind == models::Recompute::selective) {
        // Another set may save less: what it holds besides activations is the same.
        const Bytes sizes = least_memory(query_, all[i].plan);
        if (sizes <= query_.cluster.gpu().memory) refinable_.push_back({all[i], 0, 0, sizes});
      }
      if (fits && wanted_.longest_step && least[i].step > *wanted_.longest_step) {
        ++answer_.too_slow;
        continue;
      }
      const double measure = objective_.bound(query_, all[i].nodes, least[i]);
      const double against =
          wanted_.against ? wanted_.against->bound(query_, all[i].nodes, least[i]) : 0;
      (fits ? open_ : large_).push_back({std::move(all[i]), measure, against, least[i].memory});
    }
    std::ranges::stable_sort(open_, {}, &Bounded::measure);
    answer_.too_large += std::ssize(large_) - answer_.too_large_by_sizes;
    answer_.too_large_by_sizes = std::ssize(large_);
  }

  /// Plans of which a part of the layers recomputes, or other modules. Their step has the lower
  /// bound of the plan that recomputes nothing. The memory of the former has that of the plan of
  /// which all layers recompute, the memory of the latter that of sizes alone.
  void bound_variants() {
    std::vector<PlacedPlan> none;
    for (const Bounded& each : refinable_) {
      none.push_back(each.placed);
      none.back().plan.recompute = {};
    }
    std::vector<PlanBound> least = bounds_of(query_, none, workers_, shapes());
    stop_unless(least.size() == none.size());
    for (std::size_t i = 0; i < least.size(); ++i) {
      const int nodes = refinable_[i].placed.nodes;
      least[i].memory = refinable_[i].memory;
      refinable_[i].measure = objective_.bound(query_, nodes, least[i]);
      if (wanted_.against) refinable_[i].against = wanted_.against->bound(query_, nodes, least[i]);
    }
  }

  /// Makes, bounds and estimates those plans where one may be wanted.
  void refine_recomputation() {
    recomputes_modules_ = false;
    std::vector<PlacedPlan> variants;
    for (const Bounded& each : refinable_) {
      const PlacedPlan& placed = each.placed;
      const bool wanted = !answer_.stopped && incumbents_.wants(placed, each.measure, each.against);
      const bool selective = placed.plan.recompute.kind == models::Recompute::selective;
      if (!wanted) {
        const std::size_t left_out =
            selective ? module_sets(placed.plan) : partly_recomputed(query_, placed.plan).size();
        answer_.considered += static_cast<std::int64_t>(left_out);
        for (std::size_t i = 0; i < left_out; ++i) pass_over(placed, each.measure);
        continue;
      }
      for (models::Plan& variant : selective ? with_other_modules(query_, placed.plan)
                                             : partly_recomputed(query_, placed.plan)) {
        const auto number = static_cast<std::size_t>(answer_.considered++);
        note_value(selective ? recomputed_modules_key : recomputed_layers_key, variant);
        variants.push_back({.plan = std::move(variant), .nodes = placed.nodes, .number = number});
      }
    }
    if (variants.empty()) return;
    open_.clear();
    bound(std::move(variants));
    wanted_.rivals ? estimate_open_plans() : estimate_one_by_one();
  }

  /// How many other sets of modules a plan could recompute: as many as the first that was asked.
  std::size_t module_sets(const models::Plan& plan) {
    if (!module_sets_) module_sets_ = with_other_modules(query_, plan).size();
    return *module_sets_;
  }

  /// As enumeration notes the values of other fields.
  void note_value(std::string_view key, const models::Plan& plan) {
    const auto row = std::ranges::find(answer_.searched, key, &SearchedValues::key);
    if (row == answer_.searched.end()) return;
    Json value = value_in(models::plan_field(key), plan);
    if (std::ranges::find(row->values, value) == row->values.end()) {
      row->values.push_back(std::move(value));
    }
  }

  BlockShapes& shapes() { return wanted_.shapes ? *wanted_.shapes : own_shapes_; }

  /// Of the best alone, on one thread, every estimate may spare the next: what its joint
  /// collectives take, every plan with the same ones takes, too. Such a plan is put back by that
  /// bound. Static times alone rank here, and these are priced as those.
  void estimate_one_by_one() {
    using Raised = std::pair<double, std::size_t>;  // bound, and the plan's index
    std::priority_queue<Raised, std::vector<Raised>, std::greater<>> raised;
    std::unordered_map<std::string, std::vector<models::JointTimes>> known;  // by joints_key
    std::size_t next = 0;
    while (next < open_.size() || !raised.empty()) {
      const bool again =
          next == open_.size() || (!raised.empty() && raised.top().first < open_[next].measure);
      const auto [bound, i] = again ? raised.top() : Raised{open_[next].measure, next};
      again ? raised.pop() : void(++next);
      const PlacedPlan& placed = open_[i].placed;
      if (answer_.stopped || !incumbents_.wants(placed, bound, open_[i].against)) {
        pass_over(placed, bound);
        continue;
      }
      std::vector<models::JointTimes>& joints = known[joints_key(placed)];
      const double higher = again ? 0 : bound_by(joints, placed);
      if (higher > bound) {
        raised.emplace(higher, i);
        continue;
      }
      models::EstimateWithJoints found = estimator_.with_joints(placed);
      if (!found.joints.empty()) joints = std::move(found.joints);
      take(placed, found.estimate);
      answer_.stopped = workers_.progress && !workers_.progress(next, open_.size());
    }
  }

  /// Lower bound of a plan's measure by the joint collectives of its stages, which another plan
  /// has, too.
  double bound_by(const std::vector<models::JointTimes>& joints, const PlacedPlan& placed) {
    if (joints.empty()) return 0;
    const auto& shape = shapes().slot(shape_key(placed.plan, query_.cluster.node.gpus));
    const std::vector<Time> begin = before_reductions(query_, placed.plan, *shape);
    Time least{};
    for (std::size_t stage = 0; stage < joints.size(); ++stage) {
      least = std::max(least, joints[stage].all);
      if (begin.size() != joints.size() || joints[stage].after_first == Time{}) continue;
      least = std::max(least, begin[stage] + joints[stage].after_first);
    }
    return objective_.bound(query_, placed.nodes,
                            {.step = with_unexplained(least, query_.software)});
  }

  /// Estimates open plans, those with the smallest bounds first, in batches of a fixed size, so
  /// that the answer does not depend on the number of threads.
  void estimate_open_plans() {
    constexpr std::size_t batch = 32;
    for (std::size_t next = 0; next < open_.size();) {
      std::vector<const PlacedPlan*> wanted;
      const std::size_t begin = next;
      for (; next < open_.size() && wanted.size() < batch; ++next) {
        const Bounded& each = open_[next];
        if (!answer_.stopped && incumbents_.wants(each.placed, each.measure, each.against)) {
          wanted.push_back(&each.placed);
        } else {
          pass_over(each.placed, each.measure);
        }
      }
      if (!wanted.empty()) estimate(wanted, begin);
    }
    if (!answer_.stopped && !open_.empty() && workers_.progress) {
      workers_.progress(open_.size(), open_.size());
    }
  }

  void estimate(const std::vector<const PlacedPlan*>& wanted, std::size_t done) {
    std::vector<std::optional<Estimate>> found(wanted.size());
    Progress go_on;
    if (workers_.progress) {
      go_on = [&](std::size_t, std::size_t) { return workers_.progress(done, open_.size()); };
    }
    answer_.stopped = !Workers{workers_.threads, go_on}.work_through(
        wanted.size(), [&](std::size_t i, unsigned m) { found[i] = estimator_(*wanted[i], m); });
    for (std::size_t i = 0; i < wanted.size(); ++i) {
      if (found[i]) {
        take(*wanted[i], *found[i]);
      } else {
        const auto same = std::ranges::find_if(
            open_, [&](const Bounded& each) { return &each.placed == wanted[i]; });
        pass_over(same->placed, same->measure);
      }
    }
  }

  void pass_over(const PlacedPlan& placed, double bound) {
    answer_.open.push_back({cut_of(placed.plan), bound});
  }

  void take(const PlacedPlan& placed, const Estimate& estimate) {
    if (!estimate.out_of_memory) {
      if (wanted_.longest_step && estimate.step > *wanted_.longest_step) {
        ++answer_.too_slow;
        const auto& fastest = answer_.fastest_too_slow;
        if (!fastest || estimate.step < fastest->estimate.step) {
          answer_.fastest_too_slow = Candidate{placed, estimate, {}, {}, {}};
        }
        return;
      }
      if (estimate.fit == models::Fit::yes) {
        incumbents_.add(placed, objective_.measure(estimate),
                        wanted_.against ? wanted_.against->measure(estimate) : 0, estimate.memory);
      }
      answer_.fitting.push_back({placed, estimate, {}, {}, {}});
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
    std::ranges::stable_sort(large_, {}, &Bounded::memory);
    const Bytes available = query_.cluster.gpu().memory;
    for (const Bounded& each : large_) {
      if (answer_.nearest_miss &&
          each.memory - available >= lacking(answer_.nearest_miss->out_of_memory)) {
        break;
      }
      const Estimate estimate = estimator_(each.placed, 0);
      ensure(estimate.out_of_memory.has_value(), "memory_floor is above what a plan needs");
      miss(each.placed, *estimate.out_of_memory);
    }
  }

  /// Sorts plans best first, those that fit tightly last; ties by fewer recomputed FLOPs, by less
  /// memory, then in order of enumeration, plainest first. Twins are merged into one candidate.
  void order() {
    std::ranges::stable_sort(answer_.open, {}, &OpenPlan::bound);
    const auto rank = [this](const Candidate& each) {
      return std::pair{is_tight(each.estimate), objective_.measure(each.estimate)};
    };
    const auto tie = [this](const Candidate& each) {
      return std::tuple{models::recomputed_flops_per_token(query_.model, each.placed.plan),
                        each.estimate.memory, each.placed.number};
    };
    std::ranges::stable_sort(answer_.fitting, [&](const Candidate& a, const Candidate& b) {
      return rank(a) != rank(b) ? rank(a) < rank(b) : tie(a) < tie(b);
    });
    std::vector<Candidate> different;
    for (Candidate& each : answer_.fitting) {
      Candidate* twin = twin_of(each, different);
      if (twin != nullptr) {
        twin->equals.push_back(std::move(each.placed.plan));
      } else {
        different.push_back(std::move(each));
      }
    }
    answer_.fitting = std::move(different);
  }

  /// The candidate before it that a table of five digits of the step and three of memory cannot
  /// tell apart. A Pareto front is of exact figures.
  Candidate* twin_of(const Candidate& plan, std::vector<Candidate>& before) const {
    const bool exact = wanted_.against != nullptr;
    const double steps = exact ? 0 : 1e-4, sizes = exact ? 0 : 5e-3;
    for (auto each = before.rbegin(); each != before.rend(); ++each) {
      const double measure = objective_.measure(each->estimate);
      if (!alike(objective_.measure(plan.estimate), measure, std::max(steps, sizes))) break;
      if (each->placed.nodes == plan.placed.nodes && each->estimate.fit == plan.estimate.fit &&
          cut_of(each->placed.plan) == cut_of(plan.placed.plan) &&
          alike(seconds(each->estimate.step), seconds(plan.estimate.step), steps) &&
          alike(static_cast<double>(each->estimate.memory.count()),
                static_cast<double>(plan.estimate.memory.count()), sizes)) {
        return &*each;
      }
    }
    return nullptr;
  }

  static bool alike(double a, double b, double share) { return std::abs(a - b) <= share * b; }

  const PlanQuery& query_;
  const Objective& objective_;
  const Workers& workers_;
  Wanted wanted_;
  Incumbents incumbents_;
  Estimator estimator_;
  BlockShapes own_shapes_;
  std::vector<Bounded> open_, large_;
  /// Plans of which a part, or other modules, could recompute, with the bounds of that.
  std::vector<Bounded> refinable_;
  bool recomputes_modules_ = false;  // sets of modules are to be tried
  std::optional<std::size_t> module_sets_;
  PlanAnswer answer_;
};

}  // namespace

std::vector<const Candidate*> front_of(const PlanAnswer& answer, const Objective& objective,
                                       const Objective& against) {
  std::vector<const Candidate*> order, front;
  for (const Candidate& each : answer.fitting) {
    if (each.estimate.fit == models::Fit::yes) order.push_back(&each);
  }
  std::ranges::stable_sort(order, {}, [&](const Candidate* each) {
    return std::pair{objective.measure(each->estimate), against.measure(each->estimate)};
  });
  for (const Candidate* each : order) {
    const bool better =
        front.empty() || against.measure(each->estimate) < against.measure(front.back()->estimate);
    if (better) front.push_back(each);
  }
  return front;
}

ModelCut cut_of(const models::Plan& plan) {
  return {plan.tensor, plan.pipeline, plan.batch.micro};
}

double PlanAnswer::least_open() const {
  return open.empty() ? std::numeric_limits<double>::infinity() : open.front().bound;
}

PlanAnswer search_plans(const PlanQuery& query, const Objective& objective, const Workers& workers,
                        Wanted wanted) {
  if (const auto refused = refusal(query)) throw InputError{refused->pointer, refused->problem};
  return Search{query, objective, workers, wanted}.run();
}

}  // namespace orrery::scenarios
