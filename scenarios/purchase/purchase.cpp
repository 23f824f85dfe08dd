#include "scenarios/purchase/purchase.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <map>
#include <numeric>
#include <tuple>
#include <utility>

#include "hardware/catalogue.hpp"
#include "models/model/counts.hpp"
#include "models/plan/precision_formats.hpp"
#include "scenarios/purchase/purchase_ranking.hpp"
#include "scenarios/search/plan_report.hpp"
#include "scenarios/search/space/block_shapes.hpp"
#include "sim/input/units.hpp"

namespace orrery::scenarios {

namespace {

/// One node type at one size.
struct SoughtCluster {
  const SoughtNode* node = nullptr;
  int nodes = 1;
};

/// The result for one cluster: a choice, or the reason why there is none.
struct Finding {
  std::optional<PurchaseChoice> choice;
  std::string reason;
  bool misses_limit_at_peak = false;  // even at peak FLOP/s; not searched
  std::int64_t plans = 0;
};

/// Whether clusters that cannot meet deadline and budget even at peak FLOP/s are searched.
enum class MissedLimits : std::uint8_t { skip, search };

std::optional<Money> cost_of(const hardware::Cluster& cluster, double gpus, double days) {
  if (!cluster.price_per_gpu_hour) return std::nullopt;
  return Money{cluster.price_per_gpu_hour->count() * gpus * days * 24};
}

/// GPUs per node to try: all, and if that is no power of two also the largest one below, because a
/// batch may divide over as many GPUs and not over all.
std::vector<int> gpus_used(int gpus) {
  const int even = static_cast<int>(std::bit_floor(static_cast<unsigned>(gpus)));
  return even == gpus ? std::vector<int>{gpus} : std::vector<int>{gpus, even};
}

/// The node with only some of its GPUs in use, and a proportional share of the NICs.
hardware::NodeType part_of(hardware::NodeType node, int gpus) {
  node.nics = node.nics * gpus / node.gpus;
  node.gpus = gpus;
  return node;
}

/// What interrupts a run. Spot instances are taken as GCP took nodes of A100: 0.0995 a node-hour,
/// here four at once, and replaced after ten minutes. Source  traces of Bamboo (uclasystem/bamboo,
/// commit 8080929): single drops of up to 36 of 64 nodes
/// Of a mix the share on the spot market is taken, and each time the whole job restarts.
RunInputs run_of(const Payment& payment) {
  RunInputs run = usual_run();
  const double taken = payment.spot_share();
  if (taken <= 0) return run;
  constexpr double per_node_hour = 0.0995, together = 4;
  const double failing = taken < 1 ? (1 - taken) * run.rate.at(0.5) : 0;
  run.rate = prior_of(taken * per_node_hour * 24 / together + failing, 0.5);
  for (RestartStage& each : run.stages) {
    if (each.name == "reschedule") each.mean = Seconds{600};
  }
  return run;
}

class Survey {
 public:
  explicit Survey(const PurchaseQuery& query) : query_{query} {}

  /// shapes  of clusters of the same nodes, by the GPUs in use of each
  Finding look(const SoughtCluster& site, MissedLimits missed_limits,
               std::map<int, BlockShapes>& shapes) const {
    PlanQuery asked = query_.plan;
    asked.breadth = Breadth::reduced;
    asked.cluster = site.node->of_nodes(site.nodes);
    if (const auto refused = refusal(asked)) return {std::nullopt, refused->problem, false, 0};
    if (missed_limits == MissedLimits::skip) {
      std::string reason = why_missed_at_peak(asked);
      if (!reason.empty()) return {std::nullopt, std::move(reason), true, 0};
    }
    Finding found;
    const int paid = asked.cluster.gpus();
    for (const int used : gpus_used(asked.cluster.node.gpus)) {
      asked.cluster.node = part_of(asked.cluster.node, used);
      take_best(asked, site, paid, shapes[used], found);
    }
    return found;
  }

 private:
  /// Why the cluster misses a limit even at the GPUs' dense peak; empty if it does not.
  std::string why_missed_at_peak(const PlanQuery& asked) const {
    const auto peak = asked.cluster.gpu().peak(models::compute_dtype(asked.precision));
    const double gpus = asked.cluster.gpus();
    const double flops =
        3 * models::forward_flops_per_token(asked.model, asked.seq_len) * query_.tokens;
    const double days = flops / (peak->count() * gpus) / seconds_per_day;
    const std::optional<Money> cost = cost_of(asked.cluster, gpus, days);
    if (query_.deadline_days && days > *query_.deadline_days) {
      return fmt::format("even at the GPUs' peak it takes {:.1f} days", days);
    }
    if (query_.budget && cost && *cost > *query_.budget) {
      return fmt::format("even at the GPUs' peak it costs {}", format(*cost));
    }
    return {};
  }

  /// Searches one cluster and keeps its plan if it is better than the one found so far.
  void take_best(const PlanQuery& asked, const SoughtCluster& site, int paid, BlockShapes& shapes,
                 Finding& found) const {
    // One thread per search: the survey runs the searches of different nodes in parallel.
    PlanAnswer answer = search_plans(asked, objective_named("time"), {.threads = 1, .progress = {}},
                                     Wanted{.best = 1, .rivals = false, .shapes = &shapes});
    found.plans += answer.considered;
    if (answer.fitting.empty()) {
      if (found.reason.empty()) found.reason = reason_of(asked, answer);
      return;
    }
    PurchaseChoice made = choice(asked.cluster, site, paid, std::move(answer.fitting.front()));
    const auto rank = [](const PurchaseChoice& each) {
      return std::tuple{each.tight(), -each.plan.estimate.tokens_per_second};
    };
    if (found.choice && rank(made) >= rank(*found.choice)) return;
    models::Question best = question_of(asked, made.plan.placed);
    made.data_assumptions = best.assumptions;
    made.lane = lane_of(asked, made.plan.placed);
    if (query_.confidence && !take_whole_run(best, site, made, found)) return;

    for (const models::RecipeChoice& each : take_recipe(asked, best)) {
      made.taken.push_back(assumption_of(each, asked.software.name));
    }
    found.choice = std::move(made);
  }

  PurchaseChoice choice(const hardware::Cluster& cluster, const SoughtCluster& site, int gpus,
                        Candidate plan) const {
    const double days = query_.tokens / plan.estimate.tokens_per_second / seconds_per_day;
    const std::optional<Money> cost = cost_of(cluster, gpus, days);
    return {.node = site.node->name,
            .price = hardware::price_of(cluster),
            .also = {},
            .nodes = site.nodes,
            .gpus = gpus,
            .plan = std::move(plan),
            .days = days,
            .cost = cost,
            .limit_days = days,
            .limit_cost = cost,
            .meets = excess_of(query_, days, cost) <= 1,
            .pareto = false};
  }

  /// The run with its nodes in equal zones. Errors  fewer nodes than zones: InputError
  RunInputs in_zones(RunInputs run, const SoughtCluster& site) const {
    if (!query_.zones) return run;
    const std::int64_t zones = query_.zones->zones;
    if (site.nodes % zones != 0) {
      throw InputError{"--between",
                       fmt::format("{} nodes do not make {} equal zones", site.nodes, zones)};
    }
    for (std::int64_t i = 0; i < zones; ++i) {
      run.pools.push_back({.name = fmt::format("zone {}", i + 1), .nodes = site.nodes / zones});
    }
    run.between = query_.zones->between;
    return run;
  }

  /// Days and dollars with failures and restarts.
  /// found  receives the reason where it has none
  bool take_whole_run(const models::Question& question, const SoughtCluster& site,
                      PurchaseChoice& choice, Finding& found) const {
    constexpr std::size_t runs = 400;
    WholeRun whole;
    try {
      whole =
          whole_run_of(question, query_.tokens, runs, in_zones(run_of(site.node->payment), site));
    } catch (const InputError& error) {
      if (found.reason.empty()) found.reason = error.what();
      return false;
    }
    choice.days = whole.days.p50;
    choice.day_range = whole.days;
    choice.limit_days = whole.days_within(*query_.confidence);
    choice.transfer = whole.model.between_pools;
    choice.transfer_gb = whole.model.sent_between_pools;
    if (choice.price) {
      // Days of all that is paid, at one price.
      const double day = 24 * choice.price->per_gpu_hour.count() * choice.gpus;
      const double sent = choice.transfer.count();
      choice.cost = Money{choice.days * day + sent};
      choice.limit_cost = Money{choice.limit_days * day + sent};
      const RunRange& days = whole.days;
      choice.cost_range = RunRange{days.p10 * day + sent, days.p50 * day + sent,
                                   days.p90 * day + sent, days.mean * day + sent};
    }
    choice.meets = excess_of(query_, choice.limit_days, choice.limit_cost) <= 1;
    return true;
  }

  const PurchaseQuery& query_;
};

}  // namespace

Zones read_zones_flag(const std::string& text) {
  const Document document = Document::parse(text, "--between");
  const Node node = document.root();
  node.only({"zones", "bandwidth", "latency", "gradient_bytes", "dollars_per_gb", "every"});
  Json without = node.json();
  without.erase("zones");
  return {.zones = node["zones"].integer(2, 64),
          .between = read_between(Node{without, document.name(), ""})};
}

std::int64_t PurchaseAnswer::meeting() const {
  return std::ranges::count_if(choices, &PurchaseChoice::meets);
}

Json SoughtNode::stated(int nodes) const {
  Json stated = cluster;
  stated["nodes"] = nodes;
  return stated;
}

hardware::Cluster SoughtNode::of_nodes(int nodes) const {
  // Paths in `cluster` start at the working directory; mistakes in a cluster's file are named
  // there.
  const std::string flag = "--nodes";
  const Json as_stated = stated(nodes);
  const Json whole = hardware::expand_cluster(Node{as_stated, flag, ""});
  hardware::Cluster read =
      hardware::read_cluster(Node{whole, cluster.contains("like") ? name : flag, ""});
  std::vector<Quote> own;  // those of this node type, by the name under which it is sought
  for (const Quote& each : quotes) {
    if (each.node.empty() || each.node == name) own.push_back({.price = each.price});
  }
  put_price(read, payment, own);
  return read;
}

std::vector<std::string> sizes_rounded_up(const PurchaseQuery& query) {
  std::vector<std::string> found;
  for (const std::int64_t gpus : query.gpus) {
    std::map<std::int64_t, std::vector<std::string>> instead;  // nodes, by their GPUs
    for (const SoughtNode& each : query.nodes) {
      const hardware::NodeType node = each.of_nodes(1).node;
      const std::int64_t held = nodes_for(gpus, node) * node.gpus;
      if (held != gpus) instead[held].push_back(each.name);
    }
    for (const auto& [held, names] : instead) {
      found.push_back(fmt::format("{}: {} GPUs of {}", gpus, held, fmt::join(names, ", ")));
    }
  }
  return found;
}

std::vector<int> sizes_of(const hardware::NodeType& node) {
  std::vector<int> sizes;
  for (int nodes = 1; nodes * node.gpus <= most_gpus_rented; nodes *= 2) {
    sizes.push_back(nodes);
  }
  return sizes;
}

namespace {

/// All clusters of a query and the results so far.
class SurveyRun {
 public:
  SurveyRun(const PurchaseQuery& query, const Workers& workers)
      : query_{query}, survey_{query}, workers_{workers} {
    for (const SoughtNode& each : query.nodes) add_sizes(each);
    found_.resize(sites_.size());
  }

  /// Adds a node type's clusters: all, or only those that an offer rents.
  void add_sizes(const SoughtNode& node) {
    for (const int nodes : sizes_asked(node.of_nodes(1).node)) {
      const auto rental = node.every_size ? std::nullopt : hardware::rental_of(node.name, nodes);
      if (!rental || rental->covers(nodes)) {
        sites_.push_back({&node, nodes});
      } else {
        not_rented_.push_back({node.name, nodes, hardware::why_not_rented(*rental), false});
      }
    }
  }

  bool visit_all() {
    std::vector<std::size_t> all(sites_.size());
    std::iota(all.begin(), all.end(), std::size_t{0});
    return visit(all, MissedLimits::skip);
  }

  bool meets_anywhere() const {
    return std::ranges::any_of(found_, [](const std::optional<Finding>& each) {
      return each && each->choice && each->choice->meets;
    });
  }

  bool visit_missed() {
    std::vector<std::size_t> left;
    for (std::size_t i = 0; i < found_.size(); ++i) {
      if (found_[i] && found_[i]->misses_limit_at_peak) left.push_back(i);
    }
    return visit(left, MissedLimits::search);
  }

  PurchaseAnswer answer() && {
    PurchaseAnswer answer;
    for (std::size_t i = 0; i < sites_.size(); ++i) {
      if (!found_[i]) continue;
      answer.plans += found_[i]->plans;
      if (found_[i]->choice) {
        answer.choices.push_back(std::move(*found_[i]->choice));
      } else {
        answer.impossible.push_back(
            {sites_[i].node->name, sites_[i].nodes, std::move(found_[i]->reason), true});
      }
    }
    answer.impossible.insert(answer.impossible.end(), not_rented_.begin(), not_rented_.end());
    return answer;
  }

 private:
  /// Looks at clusters: those of one node type one after the other, which share their shapes; where
  /// there are fewer types than threads, in several such rows.
  /// Returns whether none was left out.
  bool visit(const std::vector<std::size_t>& sites, MissedLimits missed_limits) {
    std::vector<std::vector<std::size_t>> of_node;
    for (const std::size_t i : sites) {
      const bool same = !of_node.empty() && sites_[of_node.back().front()].node == sites_[i].node;
      if (!same) of_node.emplace_back();
      of_node.back().push_back(i);
    }
    of_node = divided(std::move(of_node), workers_.size());
    std::atomic<std::size_t> done{0};
    std::atomic<bool> stopped{false};
    const Workers watched{.threads = workers_.threads, .progress = [&](std::size_t, std::size_t) {
                            const bool go_on =
                                !workers_.progress || workers_.progress(done, sites.size());
                            if (!go_on) stopped = true;
                            return go_on;
                          }};
    watched.work_through(of_node.size(), [&](std::size_t n, unsigned) {
      std::map<int, BlockShapes> shapes;
      for (const std::size_t i : of_node[n]) {
        if (stopped) return;
        found_[i] = survey_.look(sites_[i], missed_limits, shapes);
        ++done;
      }
    });
    return done == sites.size();
  }

  /// Every row dealt out over as many rows as leave no thread without one.
  static std::vector<std::vector<std::size_t>> divided(std::vector<std::vector<std::size_t>> rows,
                                                       std::size_t threads) {
    const std::size_t pieces = rows.empty() ? 1 : (threads + rows.size() - 1) / rows.size();
    if (pieces == 1) return rows;
    std::vector<std::vector<std::size_t>> dealt;
    for (const std::vector<std::size_t>& row : rows) {
      const std::size_t first = dealt.size();
      dealt.resize(first + std::min(pieces, row.size()));
      for (std::size_t i = 0; i < row.size(); ++i) {
        dealt[first + i % (dealt.size() - first)].push_back(row[i]);
      }
    }
    return dealt;
  }

  /// Whole nodes that hold the GPUs asked for, or the usual sizes.
  std::vector<int> sizes_asked(const hardware::NodeType& node) const {
    if (query_.gpus.empty()) return sizes_of(node);
    std::vector<int> sizes;
    for (const std::int64_t gpus : query_.gpus) {
      sizes.push_back(static_cast<int>(nodes_for(gpus, node)));
    }
    sizes.erase(std::unique(sizes.begin(), sizes.end()), sizes.end());
    return sizes;
  }

  const PurchaseQuery& query_;
  Survey survey_;
  const Workers& workers_;
  std::vector<SoughtCluster> sites_;
  std::vector<std::optional<Finding>> found_;
  std::vector<Impossible> not_rented_;
};

}  // namespace

PurchaseAnswer search_purchases(const PurchaseQuery& query, const Workers& workers) {
  SurveyRun run{query, workers};
  bool all = run.visit_all();
  if (all && !run.meets_anywhere()) all = run.visit_missed();
  PurchaseAnswer answer = std::move(run).answer();
  answer.stopped = !all;
  rank_choices(query, answer.choices);
  return answer;
}

}  // namespace orrery::scenarios
