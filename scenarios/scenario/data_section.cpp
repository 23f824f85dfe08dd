#include "scenarios/scenario/data_section.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "hardware/reading.hpp"
#include "sim/input/text.hpp"
#include "sim/input/units.hpp"

namespace orrery::scenarios {

namespace {

/// A node's share of a shared store where none is stated: the better of three guidelines.
/// Source  NVIDIA DGX SuperPOD H100 reference architecture, table 6: 40 GB/s read by 32 nodes
constexpr Bandwidth usual_read_per_node{1.25e9};
constexpr double most_rate = 1e12;

double read_rate(const Node& node) {
  return hardware::within(node, 1e-6, most_rate);
}

class DataReader {
 public:
  DataReader(const models::Question& question, std::vector<std::string>& assumptions)
      : question_{question}, assumptions_{assumptions} {}

  models::DataRequest read(const Node& node) {
    node.only({"format", "bytes", "decoded_bytes", "pixels", "samples", "store", "cache", "decode",
               "augment", "copy", "prefetch", "background", "jitter", "spread", "batches", "seed"});
    read_sample(node);
    read_decoding(node);
    read_cache(node);
    read_copy(node);
    read_steps(node);
    read_store(node);  // last: the number of nodes that read depends on nothing else
    return std::move(request_);
  }

 private:
  void assume(std::string words) { assumptions_.push_back(std::move(words)); }

  void read_sample(const Node& node) {
    const Node named = node["format"];
    request_.format = named.as<std::string>();
    try {
      format_ = models::data_format(request_.format);
    } catch (const InputError& error) {
      named.fail(error.what());
    }
    double times = 1;
    if (format_.kind == "text") times = static_cast<double>(question_.plan.batch.seq_len);
    if (const auto pixels = node.find("pixels")) {
      if (format_.pixels <= 0) pixels->fail("is for images; " + format_.name + " is none");
      times = hardware::within(*pixels, 1, 1e12) / format_.pixels;
      assume(
          fmt::format("/data/pixels: bytes and decoding of {} grow with the pixels, from those "
                      "of {:g}",
                      format_.name, format_.pixels));
    }
    request_.bytes = format_.bytes * times;
    request_.decoded_bytes = format_.decoded_bytes * times;
    request_.per_core = format_.per_core / times;
    const auto take = [&](const char* key, double& value) {
      if (const auto member = node.find(key)) {
        value = static_cast<double>(hardware::positive<Bytes>(*member).count());
      }
    };
    take("bytes", request_.bytes);
    take("decoded_bytes", request_.decoded_bytes);
    if (const auto samples = node.find("samples")) {
      request_.samples = hardware::within(*samples, 1e-6, 1e9);
    }
  }

  void read_decoding(const Node& node) {
    const auto decode = node.find("decode");
    if (decode) {
      decode->only({"on", "cores", "per_core", "per_gpu", "gpu_share"});
      request_.decoded_on =
          decode->word_or("on", models::decode_place_words, models::DecodePlace::cpu);
      if (const auto rate = decode->find("per_core")) request_.per_core = read_rate(*rate);
    }
    const bool on_gpu = request_.decoded_on == models::DecodePlace::gpu;
    if (on_gpu) {
      request_.per_gpu = read_rate((*decode)["per_gpu"]);
      if (const auto share = decode->find("gpu_share")) {
        request_.gpu_share = hardware::within(*share, 0, 1);
      }
    }
    read_augmenting(node, on_gpu);
    const bool on_cores = (request_.per_core > 0 && !on_gpu) || request_.augmented_per_core > 0;
    if (!on_cores) return;
    if ((!decode || !decode->has("cores")) && format_.kind == "text") {
      request_.cores = 1;
      assume("/data/decode/cores: 1 assumed, as text is read by a thread");
      return;
    }
    if (!decode || !decode->has("cores")) {
      throw InputError{node.place() + "/decode/cores",
                       fmt::format("missing: {} is decoded by {:.4g} a core and second; state the "
                                   "cores of a node that decode, as in --set /data/decode/cores=16",
                                   format_.name, request_.per_core)};
    }
    request_.cores = hardware::within((*decode)["cores"], 0.01, 1e5);
  }

  void read_augmenting(const Node& node, bool on_gpu) {
    const auto augment = node.find("augment");
    double times = 0;
    if (augment && augment->is_object()) {
      augment->only({"per_core"});
      request_.augmented_per_core = read_rate((*augment)["per_core"]);
      return;
    }
    if (augment) {
      times = hardware::within(*augment, 0, 1000);
      if (times > 0 && request_.per_core <= 0) {
        augment->fail("is counted in the time of decoding, which " + format_.name +
                      " does not need; state {\"per_core\": SAMPLES A SECOND}");
      }
    } else if (format_.kind == "image" && !on_gpu && request_.per_core > 0) {
      times = 1;
      assume("/data/augment: 1 assumed: resizing, cropping and collating take as long as decoding");
    }
    if (times > 0) request_.augmented_per_core = request_.per_core / times;
  }

  void read_cache(const Node& node) {
    const auto cache = node.find("cache");
    if (!cache) return;
    cache->only({"hit", "share", "eviction", "bandwidth", "overlapped"});
    models::DataCache read;
    if (cache->has("hit") == cache->has("share")) {
      cache->fail(
          "expected either `hit`, the share of samples found, or `share`, that of the data "
          "set which fits");
    }
    if (const auto hit = cache->find("hit")) {
      if (cache->has("eviction")) (*cache)["eviction"].fail("is for `share`, not for `hit`");
      read.hit = hardware::within(*hit, 0, 1);
    } else {
      const double share = hardware::within((*cache)["share"], 0, 1);
      const bool kept = cache->has("eviction") && (*cache)["eviction"].one_of({"lru", "none"}) == 1;
      read.hit = kept ? share : models::lru_hits(share);
      assume(fmt::format(
          "/data/cache/share: {:.3g} of the data set gives {:.3g} hits {}", share, read.hit,
          kept ? "without eviction" : "where the least recently used sample leaves (page cache)"));
    }
    read.bandwidth = hardware::positive<Bandwidth>((*cache)["bandwidth"]);
    read.overlapped = cache->value_or("overlapped", true);
    request_.cache = read;
  }

  void read_copy(const Node& node) {
    if (const auto copy = node.find("copy")) {
      request_.copy = hardware::positive<Bandwidth>(*copy);
    } else if (question_.cluster.gpu().host_link.count() > 0) {
      request_.copy = question_.cluster.gpu().host_link;
    } else {
      throw InputError{node.place() + "/copy", fmt::format("missing, and {} states no host_link",
                                                           question_.cluster.gpu().name)};
    }
  }

  void read_steps(const Node& node) {
    constexpr std::int64_t most = 1'000'000;
    request_.background = node.value_or("background", true);
    if (node.has("prefetch") || !request_.background) {
      request_.prefetch = node.integer_or("prefetch", 0, most, 0);
      if (!request_.background && request_.prefetch > 0) {
        node["prefetch"].fail("needs `background`: true");
      }
    } else {
      assume("/data/prefetch: 2 batches assumed, PyTorch's prefetch_factor");
    }
    if (const auto jitter = node.find("jitter")) {
      jitter->only({"read", "decode", "copy", "step"});
      const auto take = [&](const char* key, double& value) {
        const auto member = jitter->find(key);
        if (!member) return;
        value = member->as<double>();
        if (value != 0 && !(value >= models::least_data_jitter && value <= 1)) {
          member->fail_expected(fmt::format("0, or a deviation over the mean from {:g} to 1",
                                            models::least_data_jitter));
        }
      };
      take("read", request_.jitter.read);
      take("decode", request_.jitter.decode);
      take("copy", request_.jitter.copy);
      take("step", request_.jitter.step);
    }
    if (const auto spread = node.find("spread")) {
      request_.spread = hardware::within(*spread, 0, 2);
    } else {
      assume(
          "/data/spread: ln 0.2 of what the lane takes assumed: machines decode the same JPEG 15 "
          "to 36 % apart, and stores deliver 9 % (median) off their other results");
    }
    request_.batches = node.integer_or("batches", 64, most, request_.batches);
    request_.seed = static_cast<std::uint64_t>(node.integer_or("seed", 0, INT64_MAX, 1));
  }

  void read_store(const Node& node) {
    models::DataStore& store = request_.store;
    const std::int64_t readers =
        models::demand_of(request_, question_.plan, question_.cluster.node.gpus).nodes;
    const auto stated = node.find("store");
    if (stated) {
      stated->only(
          {"bandwidth", "of_node", "shared_by", "requests_per_second", "latency", "in_flight"});
      store.of_node = hardware::positive_if_any<Bandwidth>(*stated, "of_node");
      store.shared_by = stated->integer_or("shared_by", readers, hardware::most_gpus, readers);
      if (const auto rate = stated->find("requests_per_second")) {
        store.requests_per_second = read_rate(*rate);
      }
      if (const auto latency = stated->find("latency")) {
        store.latency = latency->as<Time>();
        if (store.latency > Time{} && !stated->has("in_flight")) {
          throw InputError{stated->place() + "/in_flight",
                           "missing: with a latency, state how many requests a node has in flight"};
        }
      }
      store.in_flight = stated->integer_or("in_flight", 1, 1'000'000, 1);
    }
    const std::int64_t sharing = std::max(store.shared_by, readers);
    if (stated && stated->has("bandwidth")) {
      store.bandwidth = hardware::positive<Bandwidth>((*stated)["bandwidth"]);
    } else if (store.of_node) {
      store.bandwidth = *store.of_node * static_cast<double>(sharing);
    } else if (const auto read = question_.cluster.storage.read) {
      store.of_node = read;
      store.bandwidth = *read * static_cast<double>(sharing);
      assume(fmt::format("/data/store: {} of each node, /cluster/storage/read", format(*read)));
    } else {
      store.bandwidth = usual_read_per_node * static_cast<double>(sharing);
      assume(
          fmt::format("/data/store/bandwidth: {} assumed for {} nodes that read ({} for each, "
                      "DGX SuperPOD's guideline)",
                      format(store.bandwidth), sharing, format(usual_read_per_node)));
    }
  }

  const models::Question& question_;
  std::vector<std::string>& assumptions_;
  models::DataFormat format_;
  models::DataRequest request_;
};

std::string time_words(Time time) {
  return format(time);
}

}  // namespace

models::DataRequest read_data(const Node& node, const models::Question& question,
                              std::vector<std::string>& assumptions) {
  return DataReader{question, assumptions}.read(node);
}

Json data_json(const models::DataRequest& request, const models::DataAnswer& answer) {
  Json stages = Json::array();
  for (const models::DataStage& each : answer.stages) {
    stages.push_back({{"name", each.name}, {"time_s", seconds(each.time)}});
  }
  const double nodes = static_cast<double>(answer.demand.nodes);
  const double step = seconds(answer.step);
  return {{"format", request.format},
          {"bytes_per_sample", request.bytes},
          {"samples_per_step", answer.demand.samples_of_node * nodes},
          {"reading_nodes", answer.demand.nodes},
          {"stages", std::move(stages)},
          {"slowest", answer.stages.empty() ? Json(nullptr) : Json(answer.slowest())},
          {"read_limited_by", answer.read_limit},
          {"cache_hit", request.cache ? request.cache->hit : 0},
          {"time_s", seconds(answer.longest)},
          {"first_batch_s", seconds(answer.fill)},
          {"step_without_data_s", seconds(answer.compute)},
          {"gpu_time_s", seconds(answer.gpu_time)},
          {"wait_s", seconds(answer.wait())},
          {"hidden", answer.wait() == Time{}},
          {"utilisation", answer.utilisation()},
          {"samples_per_s", answer.demand.samples_of_node * nodes / step},
          {"store_bytes_per_s", static_cast<double>(answer.read.count()) / step},
          {"prefetch", request.prefetch},
          {"background", request.background},
          {"simulated_steps", answer.simulated ? Json(request.batches) : Json(nullptr)},
          {"standard_error_s", answer.simulated ? Json(answer.error_seconds) : Json(nullptr)}};
}

std::string data_words(const models::DataRequest& request, const models::DataAnswer& answer) {
  std::string words;
  for (const models::DataStage& each : answer.stages) {
    std::string how;
    if (each.name == "read") {
      how = fmt::format(" ({})", answer.read_limit);
    } else if (each.name == "decode" || each.name == "augment") {
      how = request.decoded_on == models::DecodePlace::gpu && each.name == "decode"
                ? " (GPU)"
                : fmt::format(" ({:g} cores a node)", request.cores);
    }
    words +=
        fmt::format("{}{} {}{}", words.empty() ? "" : ", ", each.name, time_words(each.time), how);
  }
  words += fmt::format(" for {:.4g} samples of {} ({} each) by {} node{}",
                       answer.demand.samples_of_node * static_cast<double>(answer.demand.nodes),
                       request.format, format(Bytes{std::llround(request.bytes)}),
                       answer.demand.nodes, answer.demand.nodes == 1 ? "" : "s");
  if (answer.gpu_time > Time{}) {
    words += fmt::format("; decoding takes {} from the GPU's kernels", time_words(answer.gpu_time));
  }
  words += request.background ? fmt::format("; {} batches ahead", request.prefetch)
                              : "; loaded when a step asks for it";
  if (answer.wait() > Time{}) {
    words += fmt::format("; without waiting the step is {}", time_words(answer.compute));
  }
  return words;
}

Json with_measured_data(const Node& data, const Json& cluster, std::int64_t seq_len,
                        std::vector<std::string>& assumptions) {
  Json filled = data.json();
  const auto named = data.find("format");
  if (!named || !named->is_string()) return filled;  // its reader says what it lacks
  const auto& formats = models::data_formats();
  const auto format =
      std::ranges::find(formats, named->as<std::string>(), &models::DataFormat::name);
  if (format == formats.end()) return filled;
  const bool text = format->kind == "text";
  const auto states = [&](const char* part, const char* key) {
    const auto found = data.find(part);
    return found && found->is_object() && found->has(key);
  };
  // What is no object is left for its reader to refuse.
  const auto fillable = [&](const char* part) {
    const auto found = filled.find(part);
    return found == filled.end() || found->is_null() || found->is_object();
  };
  for (const Json& each : cluster.value("decoding", Json::array())) {
    const std::string of = each.at("format").get<std::string>();
    if (std::ranges::count(formats, of, &models::DataFormat::name) == 0) {
      throw InputError{"/cluster/decoding", "unknown data format '" + of + "'"};
    }
    if (of != format->name || states("decode", "per_core") || !fillable("decode")) continue;
    double rate = each.at("per_core").get<double>();
    if (text) rate /= static_cast<double>(seq_len);
    if (const double timed = each.value("pixels", format->pixels); timed > 0) {
      rate *= timed / (data.has("pixels") ? data["pixels"].as<double>() : format->pixels);
    }
    filled["decode"]["per_core"] = rate;
    assumptions.push_back(fmt::format(
        "/data/decode/per_core: {:.4g} samples a second as measured (/cluster/decoding)", rate));
  }
  const Json random = cluster.value("storage", Json::object()).value("random_read", Json{});
  const bool stated = states("store", "latency") || states("store", "bandwidth") ||
                      states("store", "of_node") || states("store", "requests_per_second");
  if (random.is_string() && !text && !stated && fillable("store")) {
    // Samples lie anywhere on the node's own storage.
    const double cores = states("decode", "cores") ? data["decode"]["cores"].as<double>() : 1;
    const auto reads = static_cast<std::int64_t>(std::clamp(cores, 1.0, 1e5));
    filled["store"]["latency"] = random;
    std::string at_a_time;
    if (!states("store", "in_flight")) {
      filled["store"]["in_flight"] = reads;
      at_a_time = fmt::format(", {} reads at a time, as many as cores decode", reads);
    }
    assumptions.push_back(
        fmt::format("/data/store/latency: {} as measured (/cluster/storage/random_read){}",
                    random.get<std::string>(), at_a_time));
  }
  return filled;
}

Json data_from_flag(const std::string& flag, const std::string& text, const Json& cluster,
                    std::int64_t seq_len, std::vector<std::string>& assumptions) {
  const bool inline_text = trimmed(text).starts_with('{');
  Document read = inline_text ? Document::parse(text, flag) : Document::load(text);
  if (!read.root().is_object()) {
    throw InputError{flag,
                     "expected an object such as '{\"format\": \"jpeg-q90\", ...}', or the "
                     "path of a file with one"};
  }
  const Json data = read.json().contains("data") ? read.json()["data"] : read.json();
  return with_measured_data(Node{data, flag, ""}, cluster, seq_len, assumptions);
}

std::string wait_words(const models::DataAnswer& lane) {
  if (lane.wait() <= Time{}) return {};
  return fmt::format("waits {} of each step ({:.0f} %) for its input: {} takes longest",
                     format(lane.wait()), 100 * (1 - lane.utilisation()), lane.slowest());
}

Json wait_json(const models::DataAnswer& lane) {
  return {{"wait_s", seconds(lane.wait())}, {"slowest", lane.slowest()}};
}

}  // namespace orrery::scenarios
