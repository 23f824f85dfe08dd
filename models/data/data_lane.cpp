#include "models/data/data_lane.hpp"

#include <algorithm>
#include <cmath>

#include "models/embedded.hpp"
#include "models/plan/plan.hpp"
#include "sim/errors.hpp"
#include "sim/input/csv.hpp"
#include "sim/mean_and_spread.hpp"

namespace orrery::models {

namespace {

std::vector<DataFormat> read_data_formats() {
  for (const EmbeddedFile& file : embedded_files()) {
    if (file.path != "models/data/formats.csv") continue;
    const Table table = Table::parse(file.text, std::string{file.path});
    std::vector<DataFormat> formats;
    for (std::size_t i = 0; i < table.size(); ++i) {
      const Row row = table[i];
      formats.push_back({.name = std::string{row.text("name")},
                         .kind = std::string{row.text("kind")},
                         .bytes = row.number("bytes").value_or(0),
                         .decoded_bytes = row.number("decoded_bytes").value_or(0),
                         .per_core = row.number("per_core_s").value_or(0),
                         .pixels = row.number("pixels").value_or(0),
                         .source = std::string{row.text("source")}});
    }
    return formats;
  }
  throw ContractError{"formats of data are embedded"};
}

/// One step of SplitMix64 (Steele, Lea & Flood 2014).
std::uint64_t mixed_word(std::uint64_t state, std::uint64_t word) {
  state = (state ^ word) + 0x9e37'79b9'7f4a'7c15;
  state = (state ^ (state >> 30)) * 0xbf58'476d'1ce4'e5b9;
  state = (state ^ (state >> 27)) * 0x94d0'49bb'1331'11eb;
  return state ^ (state >> 31);
}

/// Draws the times of one station; a draw depends on the seed, the station and the batch alone.
class StationTimes {
 public:
  StationTimes(const Tandem::Station& station, std::uint64_t seed, std::size_t number)
      : time_{station.time}, state_{mixed_word(seed, number)} {
    if (station.deviation <= 0) return;
    parts_ = std::max<std::int64_t>(1, std::llround(1 / (station.deviation * station.deviation)));
  }

  Time of(std::int64_t batch) const {
    if (parts_ == 0 || time_ == Time{}) return time_;
    double product = 1;
    std::uint64_t state = mixed_word(state_, static_cast<std::uint64_t>(batch));
    for (std::int64_t i = 0; i < parts_; ++i) {
      state = mixed_word(state, static_cast<std::uint64_t>(i));
      product *= (static_cast<double>(state >> 11) + 0.5) * 0x1p-53;
    }
    return scaled(time_, -std::log(product) / static_cast<double>(parts_));
  }

 private:
  Time time_;
  std::uint64_t state_;
  std::int64_t parts_ = 0;  // exponential variables; 0: constant
};

/// Seconds for `count` at a rate; 0 without a limit.
double seconds_at(double count, double rate) {
  return rate > 0 ? count / rate : 0;
}

/// Reading the samples of a step on one node.
void take_reads(const DataRequest& request, DataAnswer& answer, double slowdown) {
  const DataStore& store = request.store;
  const double hit = request.cache ? request.cache->hit : 0;
  const double missed = (1 - hit) * answer.demand.samples_of_node;
  const auto readers = static_cast<double>(std::max(store.shared_by, answer.demand.nodes));
  double rate = store.bandwidth.count() / readers;
  if (store.of_node) rate = std::min(rate, store.of_node->count());
  const std::pair<const char*, double> limits[] = {
      {"bandwidth", slowdown * missed * request.bytes / rate},
      {"requests", slowdown * seconds_at(missed, store.requests_per_second / readers)},
      {"latency", missed * seconds(store.latency) / static_cast<double>(store.in_flight)}};
  const auto& limit =
      *std::ranges::max_element(limits, {}, &std::pair<const char*, double>::second);
  answer.read_limit = limit.first;
  answer.from_store = from_seconds(limit.second);
  answer.read =
      nearest_count<Bytes>(missed * request.bytes * static_cast<double>(answer.demand.nodes));
  Time read = answer.from_store;
  if (request.cache && hit > 0) {
    answer.from_cache = from_seconds(hit * answer.demand.samples_of_node * request.bytes /
                                     request.cache->bandwidth.count());
    if (answer.from_cache > answer.from_store) answer.read_limit = "cache";
    read = request.cache->overlapped ? std::max(answer.from_store, answer.from_cache)
                                     : answer.from_store + answer.from_cache;
  }
  answer.stages.push_back({"read", read, request.jitter.read});
}

void take_decoding(const DataRequest& request, DataAnswer& answer) {
  double on_cores = seconds_at(answer.demand.samples_of_node, request.augmented_per_core);
  if (request.decoded_on == DecodePlace::cpu) {
    on_cores += seconds_at(answer.demand.samples_of_node, request.per_core);
  }
  if (on_cores > 0) {
    const char* name =
        request.per_core > 0 && request.decoded_on == DecodePlace::cpu ? "decode" : "augment";
    answer.stages.push_back({name, from_seconds(on_cores / request.cores), request.jitter.decode});
  }
  const bool on_gpu = request.decoded_on == DecodePlace::gpu;
  const double copied = on_gpu ? request.bytes : request.decoded_bytes;
  answer.stages.push_back(
      {"copy",
       from_seconds(seconds_at(answer.demand.samples_of_gpu * copied, request.copy.count())),
       request.jitter.copy});
  if (!on_gpu) return;
  const Time decoding = from_seconds(answer.demand.samples_of_gpu / request.per_gpu);
  answer.stages.push_back({"decode", decoding, request.jitter.decode});
  answer.gpu_time = scaled(decoding, request.gpu_share);
}

}  // namespace

const std::vector<DataFormat>& data_formats() {
  static const std::vector<DataFormat> formats = read_data_formats();
  return formats;
}

const DataFormat& data_format(const std::string& name) {
  const std::vector<DataFormat>& formats = data_formats();
  const auto found = std::ranges::find(formats, name, &DataFormat::name);
  if (found != formats.end()) return *found;
  std::string known;
  for (const DataFormat& each : formats) known += " " + each.name;
  throw InputError{"unknown data format '" + name + "'; known:" + known};
}

double lru_hits(double share) {
  return share < 1 ? share + (1 - share) * std::log1p(-share) : 1;
}

DataDemand demand_of(const DataRequest& request, const Plan& plan, int gpus_per_node) {
  const auto nodes_of = [&](std::int64_t gpus) {
    return (gpus + gpus_per_node - 1) / gpus_per_node;
  };
  const std::int64_t stage = plan.tensor * plan.context;  // of one replica
  const double samples = static_cast<double>(plan.batch.global) * request.samples;
  DataDemand demand{.nodes = nodes_of(stage * plan.data)};
  if (!plan.own_rank_order().empty()) {  // stages of a replica are adjacent
    demand.nodes = std::min(nodes_of(plan.gpus()), plan.data * nodes_of(stage));
  }
  demand.samples_of_node = samples / static_cast<double>(demand.nodes);
  demand.samples_of_gpu = samples / static_cast<double>(plan.data * plan.context);
  return demand;
}

std::string DataAnswer::slowest() const {
  const auto found = std::ranges::max_element(stages, {}, &DataStage::time);
  return found == stages.end() ? std::string{} : found->name;
}

DataAnswer data_lane(const DataRequest& request, const DataDemand& demand, Time compute,
                     const DataSlowdown& slowdown) {
  DataAnswer answer;
  answer.demand = demand;
  answer.compute = compute;
  take_reads(request, answer, slowdown.reads);
  take_decoding(request, answer);
  std::erase_if(answer.stages, [](const DataStage& each) { return each.time <= Time{}; });
  for (DataStage& each : answer.stages) {
    if (slowdown.all != 1) each.time = scaled(each.time, slowdown.all);
    answer.longest = std::max(answer.longest, each.time);
    answer.fill += each.time;
  }
  const Time kernels = compute + answer.gpu_time;
  if (!request.background) {
    answer.step = kernels + answer.fill;
  } else if (!request.jitter.any()) {
    answer.step = std::max(kernels, answer.longest);
  } else {
    Tandem tandem{.stations = {},
                  .buffer = request.prefetch,
                  .batches = request.batches,
                  .seed = request.seed};
    for (const DataStage& each : answer.stages) {
      tandem.stations.push_back({each.time, each.deviation});
    }
    tandem.stations.push_back({kernels, request.jitter.step});
    const TandemAnswer found = run_tandem(tandem);
    answer.simulated = true;
    // Kernels that vary are as long on average: what the draws miss of it is no wait.
    answer.step = std::max({found.interval, kernels, answer.longest});
    answer.error_seconds = found.error_seconds;
  }
  return answer;
}

TandemAnswer run_tandem(const Tandem& tandem) {
  ensure(!tandem.stations.empty() && tandem.buffer >= 0 && tandem.batches >= 64,
         "a tandem has stations and batches");
  const std::size_t count = tandem.stations.size();
  const auto places = static_cast<std::size_t>(tandem.buffer);
  // In units that let all batches fit into Time.
  std::int64_t all = 0;
  for (const Tandem::Station& each : tandem.stations) all += each.time.count();
  const std::int64_t unit = 1 + all / ((std::int64_t{1} << 60) / tandem.batches);
  std::vector<StationTimes> times;
  for (std::size_t i = 0; i < count; ++i) {
    Tandem::Station station = tandem.stations[i];
    station.time = Time{station.time.count() / unit};
    times.emplace_back(station, tandem.seed, i);
  }
  // When each station let its last batch go, and when the last one began its latest batches.
  std::vector<Time> left(count);
  std::vector<Time> begun(places + 1);
  const std::int64_t first = tandem.batches / 8;
  constexpr std::int64_t groups = 16;
  const std::int64_t each_group = (tandem.batches - first) / groups;
  std::vector<double> means;
  Time group_began{}, began{}, ended{};
  for (std::int64_t k = 0; k < first + groups * each_group; ++k) {
    Time arrived{};
    for (std::size_t i = 0; i < count; ++i) {
      const Time start = std::max(arrived, left[i]);
      Time leaves = start + times[i].of(k);
      if (i + 1 < count) {
        const bool buffered = i + 2 == count && places > 0;
        // The next station, or a place of the buffer, is free.
        if (!buffered) {
          leaves = std::max(leaves, left[i + 1]);
        } else if (k >= tandem.buffer) {
          leaves = std::max(leaves, begun[static_cast<std::size_t>(k) % places]);
        }
      } else if (places > 0) {
        begun[static_cast<std::size_t>(k) % places] = start;
      }
      left[i] = arrived = leaves;
    }
    ended = left.back();
    if (k + 1 == first) group_began = began = ended;
    if (k >= first && (k + 1 - first) % each_group == 0) {
      means.push_back(seconds(ended - group_began) / static_cast<double>(each_group));
      group_began = ended;
    }
  }
  const double steps = static_cast<double>(groups * each_group);
  const auto of_unit = static_cast<double>(unit);
  return {.interval =
              nearest_count<Time>(static_cast<double>((ended - began).count()) / steps * of_unit),
          .error_seconds = mean_and_spread(means).error * of_unit};
}

}  // namespace orrery::models
