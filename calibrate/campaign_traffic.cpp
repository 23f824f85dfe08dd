// The parts of a campaign that move bytes or run several ranks concurrently: copies, files,
// collectives, blocks on several ranks, and compute that overlaps a copy or a collective.

#include <algorithm>
#include <map>
#include <memory>

#include "calibrate/bench/collectives.hpp"
#include "calibrate/bench/copies.hpp"
#include "calibrate/bench/decoding.hpp"
#include "calibrate/bench/storage.hpp"
#include "calibrate/campaign_state.hpp"
#include "calibrate/spelled.hpp"

namespace orrery::calibrate {

namespace {

using models::Collective;

constexpr Bytes message_overlapped = 64_MiB;
constexpr Bytes most_pinned = 256_MiB;  // host memory that one point page-locks
constexpr Bytes stored = 64_MiB;
constexpr double share_of_messages = 0.8;  // if compute during a collective is measured after them

/// One part of a measured copy.
void take_copy(CampaignState& campaign, CopyPath path, Bytes size, Time time) {
  campaign.found().copies.push_back({path, size, time});
}

/// Says what the budget did not reach, or what failed.
void left_out(CampaignState& campaign, const std::string& what) {
  if (campaign.stopped()) return;
  campaign.found().missing.push_back(what +
                                     ": the budget was spent before; state a longer --budget");
}

/// Records a copy there and one back.
template <class Copy>
void take_ways(CampaignState& campaign, const Measurement& found, const Copy& of, CopyPath there,
               CopyPath back) {
  take_copy(campaign, there, of.size(), found.median(0));
  take_copy(campaign, back, of.size(), found.median(1));
  campaign.keep(found, {},
                Json::array({part_json(name(there), of.size(), found.parts[0]),
                             part_json(name(back), of.size(), found.parts[1])}));
}

void take_overlap(CampaignState& campaign, const NamedOverlap& found, int ranks) {
  const OverlapTimes& of = found.times;
  campaign.found().overlaps.push_back(found);
  campaign.keep({{"name", found.kernel + " during " + found.other},
                 {"ranks", ranks},
                 {"parts", Json::array({part_json("alone", Bytes{}, {of.kernel}),
                                        part_json("overlapped", Bytes{}, {of.kernel_overlapped}),
                                        part_json("the other alone", Bytes{}, {of.other}),
                                        part_json("the other overlapped", Bytes{},
                                                  {of.other_overlapped})})}});
}

/// Slowdown of the same blocks while other ranks run them too, by class of kernel.
void measure_blocks(CampaignState& campaign, RankSet& together, double share) {
  std::vector<std::unique_ptr<KernelSubject>> owned;
  std::map<std::string, std::vector<Time>> alone;
  for (const Json& point : campaign.found().raw) {
    if (point.at("ranks") != 1) continue;
    for (const Json& part : point.at("parts")) {
      alone[point.at("name")].push_back(median_time(part));
    }
  }
  for (const TimedBlock& each : campaign.inputs().points) {
    if (!each.with_others || alone.count(each.name) == 0) continue;
    owned.push_back(std::make_unique<KernelSubject>(each, together));
  }
  double slowed[2] = {0, 0}, before[2] = {0, 0};  // GEMMs, others
  campaign.measure(pointers_to(owned), share, [&](const Measurement& found) {
    const KernelSubject& of = *named(owned, found.name);
    Json parts = Json::array();
    for (std::size_t p = 0; p < found.parts.size(); ++p) {
      const int which = models::is_gemm(of.operations()[p]->kind) ? 0 : 1;
      slowed[which] += seconds(found.median(p));
      before[which] += seconds(alone.at(found.name)[p]);
      parts.push_back(described(of.timed().priced_as(*of.operations()[p])));
      parts.back()["us"] = times_json(found.parts[p]);
    }
    campaign.keep(found, of.conditions(), std::move(parts), together.ranks());
  });
  if (before[0] <= 0 || before[1] <= 0) return;
  campaign.found().concurrency.push_back({.ranks = together.ranks(),
                                          .gemm = slowed[0] / before[0],
                                          .memory_bound = slowed[1] / before[1]});
}

std::vector<Collective> kinds_for(int ranks) {
  std::vector<Collective> kinds{Collective::all_reduce, Collective::all_gather,
                                Collective::reduce_scatter, Collective::broadcast,
                                Collective::all_to_all};
  if (ranks == 2) kinds.push_back(Collective::send_receive);
  return kinds;
}

void measure_collectives(CampaignState& campaign, RankSet& together, double share) {
  const int ranks = together.ranks();
  std::vector<std::unique_ptr<CollectiveSubject>> owned;
  for (const Collective kind : kinds_for(ranks)) {
    for (const Bytes size : campaign.inputs().messages) {
      owned.push_back(std::make_unique<CollectiveSubject>(kind, cut_evenly(size, ranks), together));
    }
  }
  std::map<Collective, std::map<Bytes, Time>> tables;
  campaign.measure(pointers_to(owned), share, [&](const Measurement& found) {
    const CollectiveSubject& of = *named(owned, found.name);
    tables[of.kind()][of.size()] = found.median(0);
    campaign.keep(found, of.conditions(),
                  Json::array({part_json(models::name(of.kind()), of.size(), found.parts[0])}),
                  ranks);
  });
  for (const auto& [kind, points] : tables) {
    campaign.found().collectives.push_back({std::string{models::name(kind)}, ranks, 1,
                                            hardware::SizeTable{{points.begin(), points.end()}}});
  }
}

void measure_communication_launch(CampaignState& campaign, RankSet& together) {
  CommunicationLaunch launch{together, campaign.clock()};
  campaign.measure({&launch}, 1, [&](const Measurement& found) {
    campaign.found().launch.communication = found.median(0);
    campaign.found().launch.communication_ranks = together.ranks();
    campaign.keep(found, {},
                  Json::array({part_json("host, one launch", launch.size(), found.parts[0])}),
                  together.ranks());
  });
}

}  // namespace

void measure_copies(CampaignState& campaign, RankSet& alone) {
  std::vector<std::unique_ptr<DeviceCopy>> inside;
  std::vector<std::unique_ptr<PageableCopy>> pageable;
  std::vector<std::unique_ptr<PinnedCopy>> pinned;
  std::vector<Subject*> subjects;
  for (const Bytes size : campaign.inputs().copies) {
    inside.push_back(std::make_unique<DeviceCopy>(size, alone));
    subjects.push_back(inside.back().get());
  }
  for (const Bytes size : campaign.inputs().host_copies) {
    pageable.push_back(std::make_unique<PageableCopy>(size, alone.bench(0)));
    subjects.push_back(pageable.back().get());
    if (size > most_pinned) continue;
    pinned.push_back(std::make_unique<PinnedCopy>(size, alone));
    subjects.push_back(pinned.back().get());
  }
  campaign.measure(subjects, campaign.inputs().shares.copies, [&](const Measurement& found) {
    if (const DeviceCopy* copy = named(inside, found.name)) {
      take_copy(campaign, CopyPath::on_device, copy->size(), found.median(0));
      campaign.keep(
          found, copy->conditions(),
          Json::array({part_json(name(CopyPath::on_device), copy->size(), found.parts[0])}));
    } else if (const PageableCopy* host = named(pageable, found.name)) {
      take_ways(campaign, found, *host, CopyPath::to_device, CopyPath::from_device);
    } else {
      take_ways(campaign, found, *named(pinned, found.name), CopyPath::pinned_to,
                CopyPath::pinned_from);
    }
  });
}

void measure_overlaps(CampaignState& campaign, Bench& bench) {
  const CampaignInputs& inputs = campaign.inputs();
  if (inputs.loads.empty()) return;
  const TimedBlock& product = inputs.loads.front();
  campaign.attempt("compute during page-locked copies", [&] {
    for (const NamedOverlap& each : overlap_with_pinned_copies(product, bench)) {
      take_overlap(campaign, each, 1);
    }
  });
  if (inputs.why_no_collectives.empty()) return;
  campaign.attempt("compute during a copy",
                   [&] { take_overlap(campaign, overlap_with_copy(product, bench), 1); });
}

void measure_storage(CampaignState& campaign) {
  if (campaign.inputs().folder.empty()) return;
  StorageSubject files{campaign.inputs().folder, stored, campaign.clock()};
  campaign.measure({&files}, campaign.inputs().shares.storage, [&](const Measurement& found) {
    const auto rate = [&](std::size_t part) {
      return Bandwidth{static_cast<double>(stored.count()) / seconds(found.median(part))};
    };
    campaign.found().storage = {.read = rate(1), .write = rate(0), .capacity = {}};
    campaign.found().random_read = Time{found.median(2).count() / StorageSubject::random_reads};
    constexpr Bytes random{StorageSubject::random_reads * StorageSubject::random_bytes};
    campaign.keep(found, {},
                  Json::array({part_json("write", stored, found.parts[0]),
                               part_json("read", stored, found.parts[1]),
                               part_json("read at random places", random, found.parts[2])}));
  });
  if (!campaign.found().storage.read) left_out(campaign, "storage");
}

void measure_decoding(CampaignState& campaign) {
  const CampaignInputs& inputs = campaign.inputs();
  if (inputs.folder.empty()) return;
  std::vector<std::unique_ptr<DecodingSubject>> pictures;
  for (const auto& each : inputs.codecs) {
    pictures.push_back(std::make_unique<DecodingSubject>(*each, campaign.clock()));
  }
  TextDecodingSubject text{inputs.folder};
  std::vector<Subject*> subjects = pointers_to(pictures);
  subjects.push_back(&text);
  campaign.measure(subjects, inputs.shares.decoding, [&](const Measurement& found) {
    const DecodingSubject* picture = named(pictures, found.name);
    const double count =
        picture != nullptr
            ? DecodingSubject::pictures
            : static_cast<double>(TextDecodingSubject::samples * TextDecodingSubject::sequence);
    DecodingRate rate{.format = picture != nullptr ? picture->codec().format() : "text-bytes",
                      .per_core = count / seconds(found.median(0))};
    if (picture != nullptr) {
      rate.pixels = DecodingSubject::width * DecodingSubject::height;
      rate.bytes = picture->bytes();
      rate.library = picture->codec().library();
    }
    const auto bytes = nearest_count<Bytes>(picture != nullptr ? count * rate.bytes : count);
    campaign.keep(found, {}, Json::array({part_json(found.name, bytes, found.parts[0])}));
    campaign.found().decoding.push_back(std::move(rate));
  });
  std::string names;
  for (const Subject* each : subjects) {
    const std::string format = each->name().substr(std::string_view{"decode "}.size());
    const bool known = std::ranges::any_of(
        campaign.found().decoding, [&](const DecodingRate& rate) { return rate.format == format; });
    if (!known) names += (names.empty() ? "" : ", ") + format;
  }
  if (!names.empty()) left_out(campaign, "decoding of " + names);
}

void measure_together(CampaignState& campaign, RankSet& together, double share) {
  const CampaignInputs& inputs = campaign.inputs();
  if (!together.device(0).synchronous()) measure_communication_launch(campaign, together);
  if (together.ranks() == 1) return;
  measure_blocks(campaign, together, share / 3);
  const double rest = 2 * share / 3 / (1 - share / 3);
  measure_collectives(campaign, together, inputs.loads.empty() ? rest : rest * share_of_messages);
  if (inputs.loads.empty() || campaign.stopped()) return;
  const Bytes size = std::min(message_overlapped, inputs.messages.back());
  const NamedOverlap found = overlap_with_all_reduce(inputs.loads.front(), together, size);
  campaign.found().overlap_with_communication = found.times;
  take_overlap(campaign, found, together.ranks());
}

}  // namespace orrery::calibrate
