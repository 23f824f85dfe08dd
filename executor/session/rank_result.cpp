#include "executor/session/rank_result.hpp"

#include <fmt/format.h>

#include "executor/errors.hpp"
#include "sim/input/document.hpp"

namespace orrery::executor {

namespace {

Json json_of(const std::vector<InputTimes>& input) {
  Json steps = Json::array();
  for (const InputTimes& each : input) {
    Json step = Json::array();
    for (const auto part : input_parts) step.push_back((each.*part).count());
    steps.push_back(std::move(step));
  }
  return steps;
}

std::vector<InputTimes> input_of(const Json& json) {
  std::vector<InputTimes> input;
  for (const Json& step : json) {
    InputTimes times;
    for (std::size_t i = 0; i < input_parts.size(); ++i) {
      times.*input_parts[i] = Time{step.at(i).get<std::int64_t>()};
    }
    input.push_back(times);
  }
  return input;
}

}  // namespace

std::string packed(const RankResult& result) {
  return Json{{"seconds", result.seconds},
              {"input", json_of(result.input)},
              {"peak", result.peak.count()},
              {"resident", result.resident.count()},
              {"host", result.host.count()},
              {"routed", {result.routed.rows, result.routed.slots, result.routed.group}},
              {"arrived", result.routed.arrived}}
      .dump();
}

RankResult parse_result(const std::string& text, int rank, std::size_t steps) {
  try {
    const Json json = Json::parse(text);
    RankResult result{
        .peak = Bytes{json.at("peak").get<std::int64_t>()},
        .resident = Bytes{json.at("resident").get<std::int64_t>()},
        .host = Bytes{json.at("host").get<std::int64_t>()},
        .routed = {json.at("routed").at(0).get<std::int64_t>(),
                   json.at("routed").at(1).get<std::int64_t>(), json.at("routed").at(2).get<int>(),
                   json.at("arrived").get<std::vector<std::int64_t>>()},
        .seconds = json.at("seconds").get<std::vector<double>>(),
        .input = input_of(json.at("input"))};
    if (result.seconds.size() == steps && result.input.size() == steps) return result;
  } catch (const Json::exception&) {  // reported below
  }
  throw RunFailure{Exit::peer_failed,
                   fmt::format("rank {} sent a result that cannot be read", rank)};
}

}  // namespace orrery::executor
