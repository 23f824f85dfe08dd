#include "calibrate/campaign.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "calibrate/bench/kernels.hpp"
#include "calibrate/bench/messages.hpp"
#include "calibrate/fit/minimise.hpp"
#include "calibrate/spelled.hpp"
#include "models/pricing/calibrated.hpp"
#include "sim/errors.hpp"

namespace orrery::calibrate {

namespace {

using models::Collective;
using models::Operation;
using models::OpKind;

// How the budget is parted: kernels alone first, as everything needs them.
constexpr double share_of_kernels = 0.5;
constexpr double share_of_storage = 0.05;

constexpr Bytes copied{64 << 20};
constexpr Bytes stored{64 << 20};

/// The devices, threads and gate of ranks that are measured at once.
struct Crew {
  Crew(int ranks, const CampaignInputs& inputs, Clock& clock)
      : team{ranks}, gate{ranks}, ranks_at_once{team, gate, {}, clock, this_machine("").cores} {
    for (int rank = 0; rank < ranks; ++rank) {
      devices.push_back(inputs.device());
      ranks_at_once.devices.push_back(devices.back().get());
    }
  }

  Team team;
  Gate gate;
  std::vector<std::unique_ptr<executor::Device>> devices;
  Ranks ranks_at_once;
};

class Campaign {
 public:
  Campaign(const CampaignInputs& inputs, Clock& clock)
      : inputs_{inputs}, clock_{clock}, harness_{clock, inputs.rules, inputs.seed} {}

  Findings run() {
    {
      Crew alone{1, inputs_, clock_};
      findings_.machine = this_machine(alone.devices.front()->description());
      findings_.launch = launch_cost(*alone.devices.front());
      measure_kernels(alone);
    }
    std::vector<int> several;
    for (const int ranks : inputs_.ranks) {
      if (ranks > 1) several.push_back(ranks);
    }
    measure_storage(several.empty() ? 1 : share_of_storage);
    for (std::size_t i = 0; i < several.size() && !stopped_; ++i) {
      const double share = 1.0 / static_cast<double>(several.size() - i);
      Crew crew{several[i], inputs_, clock_};
      measure_at_once(crew, share / 3);
      measure_collectives(crew, 2 * share / 3 / (1 - share / 3));
    }
    findings_.discarded_runs = harness_.discarded_runs();
    return std::move(findings_);
  }

 private:
  std::vector<Measurement> measure(const std::vector<Subject*>& subjects, double share,
                                   const Taker& take = {}) {
    const auto watcher = [this](std::size_t done, std::size_t all) {
      if (inputs_.watcher && !inputs_.watcher(done, all)) stopped_ = true;
      return !stopped_;
    };
    std::vector<Measurement> found = harness_.measure(subjects, share, watcher, take);
    findings_.points_left_out += static_cast<int>(subjects.size() - found.size());
    for (const Measurement& each : found) findings_.disturbed_points += each.disturbed ? 1 : 0;
    return found;
  }

  /// Two marks and the look at a clock around a kernel, as the executor pays them.
  Time launch_cost(executor::Device& device) {
    constexpr int marks = 1000;
    std::vector<Time> rounds;
    for (int round = 0; round < 5; ++round) {
      const Time begin = clock_.now();
      for (int i = 0; i < marks; ++i) device.mark(models::Lane::compute);
      rounds.push_back(Time{2 * (clock_.now() - begin).count() / marks});
      device.forget_marks();
    }
    return quantile(rounds, 0.5);
  }

  void keep(const Measurement& found, int ranks, Json parts) {
    findings_.raw.push_back({{"name", found.name},
                             {"ranks", ranks},
                             {"settled", found.settled},
                             {"disturbed", found.disturbed},
                             {"spread", found.spread},
                             {"discarded_runs", found.discarded_runs},
                             {"parts", std::move(parts)}});
    if (inputs_.sample) inputs_.sample(findings_.raw.back());
  }

  void keep_block(const Measurement& found, const BlockSubject& subject, int ranks) {
    Json parts = Json::array();
    for (std::size_t p = 0; p < found.parts.size(); ++p) {
      Json part = described(*subject.operations()[p]);
      part["us"] = times_json(found.parts[p]);
      parts.push_back(std::move(part));
    }
    keep(found, ranks, std::move(parts));
  }

  std::vector<std::unique_ptr<BlockSubject>> subjects_of(const Crew& crew, bool all) const {
    std::vector<std::unique_ptr<BlockSubject>> subjects;
    for (const NamedBlock& each : inputs_.blocks) {
      if (!all && !each.with_others) continue;
      subjects.push_back(
          std::make_unique<BlockSubject>(each.name, *each.block, *each.model, crew.ranks_at_once));
      if (subjects.back()->parts() == 0) subjects.pop_back();
    }
    return subjects;
  }

  static const BlockSubject& named(const std::vector<std::unique_ptr<BlockSubject>>& subjects,
                                   const std::string& name) {
    const auto found = std::find_if(subjects.begin(), subjects.end(),
                                    [&](const auto& each) { return each->name() == name; });
    ensure(found != subjects.end(), "a measurement is of one of its subjects");
    return **found;
  }

  void measure_kernels(Crew& crew) {
    const auto blocks = subjects_of(crew, true);
    CopySubject copy{copied, crew.ranks_at_once};
    std::vector<Subject*> subjects{&copy};
    for (const auto& each : blocks) subjects.push_back(each.get());
    measure(subjects, share_of_kernels, [&](const Measurement& found) {
      if (found.name == copy.name()) {
        findings_.copy_rate =
            Bandwidth{static_cast<double>(copy.traffic().count()) / seconds(found.median(0))};
        keep(found, 1,
             Json::array({{{"bytes", copied.count()}, {"us", times_json(found.parts[0])}}}));
        return;
      }
      const BlockSubject& subject = named(blocks, found.name);
      for (std::size_t p = 0; p < found.parts.size(); ++p) {
        take(*subject.operations()[p], found.median(p));
      }
      keep_block(found, subject, 1);
      alone_[found.name] = found;
    });
  }

  /// One operation's median time, under its kind.
  void take(const Operation& op, Time time) {
    const hardware::GemmShape shape{op.gemm.m, op.gemm.n, op.gemm.k};
    time = std::max(time, Time{1});
    if (op.kind == OpKind::gemm) {
      findings_.products.push_back({shape, op.flops, op.bytes, time});
    } else if (op.kind == OpKind::batched_gemm) {
      const std::int64_t batch = op.gemm.batch;
      findings_.batched.push_back({shape, Flops{op.flops.count() / batch},
                                   Bytes{op.bytes.count() / batch},
                                   std::max(Time{time.count() / batch}, Time{1})});
    } else if (op.kind == OpKind::grouped_gemm) {
      findings_.grouped.push_back({op, time});
    } else if (op.bytes > Bytes{0}) {
      findings_.kernels[models::kernel_key(op)].push_back({op.bytes, time});
      findings_.kernels[std::string{models::name(op.kind)}].push_back({op.bytes, time});
    }
  }

  /// What the same blocks take longer when other ranks run them too, by class of kernel.
  void measure_at_once(Crew& crew, double share) {
    const auto blocks = subjects_of(crew, false);
    std::vector<Subject*> subjects;
    for (const auto& each : blocks) {
      if (alone_.count(each->name()) > 0) subjects.push_back(each.get());
    }
    double together[2] = {0, 0}, alone[2] = {0, 0};  // products, others
    for (const Measurement& found : measure(subjects, share)) {
      const BlockSubject& subject = named(blocks, found.name);
      for (std::size_t p = 0; p < found.parts.size(); ++p) {
        const OpKind kind = subject.operations()[p]->kind;
        const int which = models::is_product(kind) ? 0 : 1;
        together[which] += seconds(found.median(p));
        alone[which] += seconds(alone_.at(found.name).median(p));
      }
      keep_block(found, subject, crew.team.ranks());
    }
    if (alone[0] <= 0 || alone[1] <= 0) return;
    findings_.concurrency.push_back({.ranks = crew.team.ranks(),
                                     .gemm = together[0] / alone[0],
                                     .memory_bound = together[1] / alone[1]});
  }

  void measure_collectives(Crew& crew, double share) {
    const int ranks = crew.team.ranks();
    const auto fabrics = inputs_.world(ranks);
    std::vector<executor::Fabric*> borrowed;
    for (const auto& each : fabrics) borrowed.push_back(each.get());
    std::vector<int> members(static_cast<std::size_t>(ranks));
    std::iota(members.begin(), members.end(), 0);
    std::vector<executor::GroupId> groups(members.size());
    crew.team.all([&](int rank) {
      groups[static_cast<std::size_t>(rank)] =
          borrowed[static_cast<std::size_t>(rank)]->make_group(members);
    });
    std::vector<std::unique_ptr<CollectiveSubject>> owned;
    std::vector<Subject*> subjects;
    for (const Collective kind : kinds_for(ranks)) {
      for (std::int64_t size = 256; size <= 16 << 20; size *= 4) {
        const std::int64_t unit = 4 * ranks;
        const Bytes even{(size + unit - 1) / unit * unit};
        owned.push_back(std::make_unique<CollectiveSubject>(kind, even, crew.ranks_at_once,
                                                            borrowed, groups.front()));
        subjects.push_back(owned.back().get());
      }
    }
    const std::vector<Measurement> found = measure(subjects, share);
    for (const Collective kind : kinds_for(ranks)) {
      std::vector<hardware::SizeTable::Point> points;
      for (const auto& subject : owned) {
        if (subject->kind() != kind) continue;
        for (const Measurement& each : found) {
          if (each.name != subject->name()) continue;
          points.push_back({subject->size(), each.median(0)});
          keep(each, ranks,
               Json::array(
                   {{{"bytes", subject->size().count()}, {"us", times_json(each.parts[0])}}}));
        }
      }
      if (points.empty()) continue;
      findings_.collectives.push_back(
          {std::string{models::name(kind)}, ranks, 1, hardware::SizeTable{std::move(points)}});
    }
  }

  static std::vector<Collective> kinds_for(int ranks) {
    std::vector<Collective> kinds{Collective::all_reduce, Collective::all_gather,
                                  Collective::reduce_scatter, Collective::broadcast,
                                  Collective::all_to_all};
    if (ranks == 2) kinds.push_back(Collective::send_receive);
    return kinds;
  }

  void measure_storage(double share) {
    StorageSubject files{inputs_.folder, stored, clock_};
    const auto found = measure({&files}, std::min(1.0, share));
    if (found.empty()) return;
    const auto rate = [&](std::size_t part) {
      return Bandwidth{static_cast<double>(stored.count()) / seconds(found[0].median(part))};
    };
    findings_.storage = {.read = rate(1), .write = rate(0)};
    Json parts = Json::array();
    for (const std::size_t part : {std::size_t{0}, std::size_t{1}}) {
      parts.push_back({{"operation", part == 0 ? "write" : "read"},
                       {"bytes", stored.count()},
                       {"us", times_json(found[0].parts[part])}});
    }
    keep(found[0], 1, std::move(parts));
  }

  const CampaignInputs& inputs_;
  Clock& clock_;
  Harness harness_;
  Findings findings_;
  std::map<std::string, Measurement> alone_;
  bool stopped_ = false;
};

}  // namespace

Findings run_campaign(const CampaignInputs& inputs, Clock& clock) {
  return Campaign{inputs, clock}.run();
}

}  // namespace orrery::calibrate
