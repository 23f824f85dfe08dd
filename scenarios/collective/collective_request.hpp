#pragma once
// `orrery collective`: the table that nccl-tests would print on a cluster, and why each time is so.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "models/network/collectives/steps.hpp"
#include "sim/input/document.hpp"

namespace orrery::scenarios {

/// How a collective is evaluated: by its cost model alone, as flows on the cluster's links that
/// progress together ("locked parts"), or with every message of every rank as a flow on them.
enum class NetworkForm : std::uint8_t { fixed, events, steps };
inline constexpr Words<NetworkForm, 3> network_form_words{{{NetworkForm::fixed, "static"},
                                                           {NetworkForm::events, "events"},
                                                           {NetworkForm::steps, "steps"}}};

/// One measured time of a log.
struct MeasuredPoint {
  std::string operation;  // one of `collective_words`; others are ignored
  Bytes size{};
  Time time{};
  std::int64_t ranks = 0;  // 0: the log does not say
  std::string device;      // empty: the log does not say
  std::string place;       // "log.txt:line 12"
};

/// The flags of `orrery collective`, as text.
struct CollectiveRequest {
  std::string cluster;
  std::string operation = "all_reduce";
  std::vector<std::string> sizes{};  // "8B:1GiB:2", "1MiB"
  std::optional<std::int64_t> ranks{};
  std::string algorithm{}, protocol{};
  std::optional<int> channels{};
  std::string counts{};  // a file of bytes, one line per sender
  std::string network = "static";
  /// fastest: by the cost models; nccl: as NCCL's tuner expects, except where a time is measured.
  /// nullopt: nccl with an environment, else fastest.
  std::optional<std::string> choice{};
  std::vector<std::string> environment{};  // "NCCL_ALGO=Ring": what NCCL's tuner may choose
  std::vector<MeasuredPoint> against{};
};

struct CollectiveRow {
  Bytes size{};
  models::CollectiveTime price{};  // its time comes from `run` if there is one
  std::optional<models::NetworkRun> run{};
  std::optional<Time> measured{};
};

/// Latency and bus bandwidth fitted to the measured all-reduces, and their errors on the other
/// collectives of the log.
struct ExplainingConstants {
  Time latency{};
  Bandwidth bus{};
  double median_error = 0;  // of the all-reduces themselves
  struct Sibling {
    std::string operation;
    std::size_t points = 0;
    double median_error = 0;
  };
  std::vector<Sibling> siblings{};
};

struct CollectiveReport {
  models::Collective operation{};
  models::GroupShape group{};
  std::string cluster;
  NetworkForm network = NetworkForm::fixed;
  std::vector<CollectiveRow> rows{};
  std::optional<ExplainingConstants> constants{};
  std::vector<std::string> assumptions{};
  double load_seconds = 0, simulate_seconds = 0;
};

/// Errors  InputError as the flags of `orrery collective`: `--ranks: expected 2 to 16, found 17`
CollectiveReport answer(const CollectiveRequest& request);

/// `cluster, operation, ranks, nodes, network, rows[], against, assumptions`; with `timing` also
/// `wall_time_s`.
Json to_json(const CollectiveReport& answer, bool timing);
std::string text_of(const CollectiveReport& answer, bool timing, bool colour);

}  // namespace orrery::scenarios
