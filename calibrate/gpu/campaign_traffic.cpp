// What a campaign measures of bytes that move: copies, collectives, and either beside compute.

#include <algorithm>
#include <map>

#include "calibrate/gpu/campaign_book.hpp"
#include "calibrate/gpu/communication_launch.hpp"
#include "calibrate/gpu/pinned_copy.hpp"
#include "calibrate/spelled.hpp"

namespace orrery::calibrate {

namespace {

using models::Collective;

constexpr double share_of_copies = 0.4;  // of what points left of the budget
constexpr double share_of_messages = 0.8;
constexpr Bytes message_beside = 64_MiB;
constexpr Bytes most_pinned = 256_MiB;  // that one point locks of the host's memory

/// Times of two pieces side by side: into the notes, and raw.
void take(CampaignBook& book, const NamedBeside& found, int ranks) {
  const Beside& of = found.times;
  book.found().beside.push_back(found);
  book.keep({{"name", found.kernel + " beside " + found.other},
             {"ranks", ranks},
             {"parts", Json::array({part_json("alone", Bytes{}, {of.kernel}),
                                    part_json("beside", Bytes{}, {of.kernel_beside}),
                                    part_json("the other alone", Bytes{}, {of.other}),
                                    part_json("the other beside", Bytes{}, {of.other_beside})})}});
}

/// A copy there, and one back.
template <class Copy>
void take_ways(CampaignBook& book, const Measurement& found, const Copy& of, const char* there,
               const char* back) {
  book.found().copies.push_back({there, of.size(), found.median(0)});
  book.found().copies.push_back({back, of.size(), found.median(1)});
  book.keep(found, {},
            Json::array({part_json(there, of.size(), found.parts[0]),
                         part_json(back, of.size(), found.parts[1])}));
}

std::vector<Collective> kinds_for(int ranks) {
  std::vector<Collective> kinds{Collective::all_reduce, Collective::all_gather,
                                Collective::reduce_scatter, Collective::broadcast,
                                Collective::all_to_all};
  if (ranks == 2) kinds.push_back(Collective::send_receive);
  return kinds;
}

void measure_collectives(CampaignBook& book, GpuCrew& crew) {
  const int ranks = crew.team.ranks();
  std::vector<std::unique_ptr<QueueCollective>> owned;
  std::vector<Subject*> subjects;
  for (const Collective kind : kinds_for(ranks)) {
    for (const Bytes size : book.inputs().messages) {
      owned.push_back(std::make_unique<QueueCollective>(kind, cut_evenly(size, ranks), crew));
      subjects.push_back(owned.back().get());
    }
  }
  std::map<Collective, std::map<Bytes, Time>> tables;
  book.measure(subjects, share_of_messages, [&](const Measurement& found) {
    const QueueCollective& of = *named(owned, found.name);
    tables[of.kind()][of.size()] = found.median(0);
    const std::string what{models::name(of.kind())};
    book.keep(found, {}, Json::array({part_json(what, of.size(), found.parts[0])}), ranks);
  });
  for (const auto& [kind, points] : tables) {
    book.found().collectives.push_back({std::string{models::name(kind)}, ranks, 1,
                                        hardware::SizeTable{{points.begin(), points.end()}}});
  }
}

void measure_communication_launch(CampaignBook& book, GpuCrew& crew) {
  CommunicationLaunch launch{crew, book.clock()};
  book.measure({&launch}, 1, [&](const Measurement& found) {
    book.found().launch.communication = found.median(0);
    book.found().launch.communication_ranks = crew.team.ranks();
    book.keep(found, {},
              Json::array({part_json("host, one launch", launch.size(), found.parts[0])}),
              crew.team.ranks());
  });
}

}  // namespace

void measure_copies(CampaignBook& book, QueueBench& bench) {
  std::vector<std::unique_ptr<CopyOnQueue>> inside;
  std::vector<std::unique_ptr<HostCopy>> pageable;
  std::vector<std::unique_ptr<PinnedCopy>> pinned;
  std::vector<Subject*> subjects;
  for (const Bytes size : book.inputs().copies) {
    inside.push_back(std::make_unique<CopyOnQueue>(size, bench));
    pageable.push_back(std::make_unique<HostCopy>(size, bench));
    subjects.push_back(inside.back().get());
    subjects.push_back(pageable.back().get());
    if (size > most_pinned) continue;
    pinned.push_back(std::make_unique<PinnedCopy>(size, bench));
    subjects.push_back(pinned.back().get());
  }
  book.measure(subjects, share_of_copies, [&](const Measurement& found) {
    if (const CopyOnQueue* copy = named(inside, found.name)) {
      book.found().copies.push_back({"on the device", copy->size(), found.median(0)});
      book.keep(found, copy->conditions(),
                Json::array({part_json("on the device", copy->size(), found.parts[0])}));
    } else if (const HostCopy* host = named(pageable, found.name)) {
      take_ways(book, found, *host, "to the device", "from the device");
    } else {
      take_ways(book, found, *named(pinned, found.name), "to the device, page-locked",
                "from the device, page-locked");
    }
  });
}

void measure_beside(CampaignBook& book, QueueBench& bench) {
  const GpuCampaignInputs& inputs = book.inputs();
  if (inputs.loads.empty()) return;
  const TimedBlock& product = inputs.loads.front();
  book.attempt("compute beside page-locked copies", [&] {
    for (const NamedBeside& each : beside_pinned_copies(product, bench)) take(book, each, 1);
  });
  if (inputs.rank) return;
  book.attempt("compute beside a copy", [&] { take(book, beside_copy(product, bench), 1); });
}

void measure_communication(CampaignBook& book) {
  const GpuCampaignInputs& inputs = book.inputs();
  if (inputs.rank) {
    book.attempt("several GPUs", [&] {
      GpuCrew crew{inputs.gpu.count, inputs.rank};
      measure_communication_launch(book, crew);
      measure_collectives(book, crew);
      if (inputs.loads.empty() || book.stopped()) return;
      const Bytes size = std::min(message_beside, inputs.messages.back());
      const NamedBeside found = beside_all_reduce(inputs.loads.front(), crew, size);
      book.found().beside_communication = found.times;
      take(book, found, crew.team.ranks());
    });
  } else if (inputs.lone_rank) {
    book.attempt("a communicator of one rank", [&] {
      GpuCrew crew{1, inputs.lone_rank};
      measure_communication_launch(book, crew);
    });
  }
}

}  // namespace orrery::calibrate
