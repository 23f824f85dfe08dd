// Every number of a question at the ends of what can be written: it is refused in one line, or the
// prediction is possible. Run under the sanitizers of integers and casts (.ci/run).

#include <fmt/format.h>

#include <catch2/catch.hpp>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "hardware/catalogue.hpp"
#include "models/plan/conflicts.hpp"
#include "models/prediction/prediction.hpp"
#include "models/software/software.hpp"
#include "sim/input/document.hpp"

namespace orrery::models {
namespace {

using Pointer = Json::json_pointer;

/// Two nodes, two stages, two micro-batches, every kind of parallelism.
Json small_question() {
  return {{"model",
           {{"format", "orrery-model"},
            {"family", "llama"},
            {"layers", 2},
            {"hidden", 64},
            {"heads", 4},
            {"kv_heads", 2},
            {"head_dim", 16},
            {"ffn_hidden", 128},
            {"vocab", 128},
            {"max_positions", 256},
            {"sliding_window", 64}}},
          {"cluster", hardware::Catalogue::cluster("dgx-h100 x 2")},
          {"software", software_profile("megatron-lm")},
          {"plan",
           {{"tensor", 2},
            {"sequence", true},
            {"pipeline", 2},
            {"virtual_stages", 1},
            {"data", 4},
            {"micro_batch", 1},
            {"global_batch", 8},
            {"seq_len", 128},
            {"zero", 1},
            {"bucket", "25 MB"}}}};
}

std::vector<Json> boundary_integers() {
  constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max();
  return {0,          -1,         1,    1 << 20,
          most >> 33, most >> 10, most, std::numeric_limits<std::int64_t>::min()};
}

std::vector<Json> boundary_numbers() {
  return {0.0, -1.0, 1e-300, 0.5, 1e18, 1e300, std::numeric_limits<double>::max()};
}

/// "3.35 TB/s" with other numbers before its unit.
std::vector<Json> boundary_quantities(const std::string& text) {
  const std::size_t unit = text.find_first_not_of("$0123456789.e-");
  const std::string dollar = text.front() == '$' ? "$" : "";
  std::vector<Json> all;
  for (const char* number : {"0", "1e-300", "1e-9", "1", "1e9", "9e18", "1e300"}) {
    all.push_back(dollar + number + text.substr(unit));
  }
  return all;
}

bool is_quantity(const std::string& text) {
  const std::size_t first = text.find_first_of("0123456789");
  if (first != 0 && !(first == 1 && text.front() == '$')) return false;
  const std::size_t unit = text.find_first_not_of("$0123456789.e-");
  return unit != std::string::npos && (text[unit] == ' ' || text[unit] == '/');
}

/// Everything that may stand in a value's place.
std::vector<Json> boundaries(const Json& value) {
  if (value.is_number_integer()) return boundary_integers();
  if (value.is_number()) return boundary_numbers();
  if (!value.is_string() || !is_quantity(value.get<std::string>())) return {};
  return boundary_quantities(value.get<std::string>());
}

/// Pointers of all numbers and quantities; of a long list its first and last.
void collect(const Json& value, const std::string& pointer, std::vector<std::string>& found) {
  if (pointer.find("/sources") != std::string::npos) return;
  if (!boundaries(value).empty()) found.push_back(pointer);
  if (value.is_object()) {
    for (const auto& [key, member] : value.items()) collect(member, pointer + "/" + key, found);
  } else if (value.is_array()) {
    for (std::size_t i = 0; i < value.size(); i += std::max<std::size_t>(1, value.size() - 1)) {
      collect(value[i], fmt::format("{}/{}", pointer, i), found);
    }
  }
}

/// As a scenario is read and answered.
void answer(const Json& json) {
  const std::string file = "question.json";
  const auto section = [&](const char* key) {
    return Node{json.at(key), file, std::string{"/"} + key};
  };
  Question question;
  question.model = read_model(section("model"));
  question.cluster = hardware::read_cluster(section("cluster"));
  question.software = read_software(section("software"));
  question.plan =
      read_plan(section("plan"), question.model, question.cluster.gpus(), question.assumptions);
  if (!conflicts(question).empty()) return;
  const Prediction prediction = predict(question);
  CHECK(prediction.step > Time{});
  CHECK(std::isfinite(prediction.tokens_per_second));
  CHECK(prediction.mfu >= 0);
  CHECK(prediction.mfu <= 1 + 1e-9);
  Time sum{};
  for (const Time part : prediction.breakdown) sum += part;
  CHECK(sum == prediction.step);
}

}  // namespace

TEST_CASE("Whatever number is extreme, a question is refused or its answer is possible") {
  const Json question = small_question();
  std::vector<std::string> pointers;
  collect(question, "", pointers);
  CHECK(pointers.size() > 100);
  std::size_t refused = 0, answered = 0;
  for (const std::string& pointer : pointers) {
    for (const Json& value : boundaries(question.at(Pointer{pointer}))) {
      Json changed = question;
      changed[Pointer{pointer}] = value;
      INFO(pointer << " = " << value.dump());
      try {
        answer(changed);
        ++answered;
      } catch (const InputError& error) {
        ++refused;
        CHECK(std::string{error.what()}.find('\n') == std::string::npos);
      }
    }
  }
  CHECK(refused > 100);
  CHECK(answered > 100);
}

TEST_CASE("Sequences and batches too large to count are refused, whichever is large") {
  // seq_len 2^26 on this model: 2^26 squared scores of 4 heads pass 2^63 with what follows.
  const auto refusal_of = [](const char* key, std::int64_t value) -> std::string {
    Json json = small_question();
    json["model"]["hidden"] = 8192;
    json["model"]["head_dim"] = 2048;
    json["model"]["layers"] = 128;
    json["plan"][key] = value;
    if (std::string{key} == "micro_batch") json["plan"]["global_batch"] = value * 8;
    try {
      answer(json);
    } catch (const InputError& error) {
      return error.what();
    }
    return "answered";
  };
  CHECK_THAT(refusal_of("seq_len", 1 << 30), Catch::Matchers::Contains("2^63"));
  CHECK_THAT(refusal_of("micro_batch", 1 << 20), !Catch::Matchers::Contains("answered"));
}

}  // namespace orrery::models
