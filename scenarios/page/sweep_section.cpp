#include "scenarios/page/sweep_section.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <istream>
#include <limits>
#include <map>
#include <set>

#include "scenarios/drawing/markup.hpp"
#include "scenarios/page/html.hpp"
#include "scenarios/whatif/sweep_store.hpp"

namespace orrery::scenarios {

namespace {

constexpr std::string_view store_beginning = R"({"orrery_sweep")";
constexpr std::size_t most_best = 20, most_others = 300, most_values = 64;

std::string words_of_value(const Json& value) {
  return value.is_string() ? value.get<std::string>() : value.dump();
}

/// "tensor 4, bandwidth 400 Gb/s".
std::string row_label(const Json& row) {
  std::string text;
  for (const auto& [pointer, value] : row.at("values").items()) {
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", pointer.substr(pointer.rfind('/') + 1),
                        words_of_value(value));
  }
  return text;
}

/// Variants may have different batches, so that steps alone do not compare them.
double time_of_million(const Json& row) {
  return 1e6 / row.at("tokens_per_s").get<double>();
}

double bytes_of(const Json& row) {
  return row.at("peak_memory_bytes").get<double>();
}

bool faster_row(const Json& a, const Json& b) {
  return time_of_million(a) < time_of_million(b);
}

/// Rows of a store as they come; keeps what the page shows.
class SweepRows {
 public:
  /// vary  of the store's first line: `[{pointer, values}]`
  explicit SweepRows(const Node& vary) {
    for (const Node& each : vary.elements()) {
      Varied& varied = varied_at(each["pointer"].as<std::string>());
      for (const Node& value : each["values"].elements()) varied.rank(words_of_value(value.json()));
    }
  }

  void add(const Json& row) {
    ++rows_;
    if (!row.at("error").is_null()) {
      if (refused_++ == 0) first_refused_ = row.at("error");
      return;
    }
    const bool fits = row.at("fits").get<bool>();
    const bool doubted = row.at("fit") == "doubtful";
    if (fits) ++fits_;
    if (fits && doubted) ++doubtful_;
    for (const auto& [pointer, value] : row.at("values").items()) {
      add_to_value(pointer, words_of_value(value), row, fits && !doubted);
    }
    if (!fits) return;
    keep(doubted ? doubted_ : best_, row);
    if (!doubted) add_to_front(row);
    add_to_sample(row);
  }

  Json json(const Json& header) const {
    Json values = Json::array(), more = Json::array();
    for (const Varied& varied : varied_) {
      for (const auto& [rank, found] : varied.found) {
        values.push_back({{"pointer", varied.pointer},
                          {"value", found.value},
                          {"variants", found.variants},
                          {"fits", found.fits},
                          {"fastest", found.fastest}});
      }
      if (varied.left_out.empty()) continue;
      more.push_back({{"pointer", varied.pointer}, {"values", varied.left_out.size()}});
    }
    return {{"orrery_sweep", header.at("orrery_sweep")},
            {"scenario", header.at("scenario")},
            {"vary", header.at("vary")},
            {"variants", header.at("variants")},
            {"shard", header.at("shard")},
            {"rows", rows_},
            {"refused", refused_},
            {"first_refused", first_refused_},
            {"fits", fits_},
            {"doubtful", doubtful_},
            {"best", best_.empty() ? doubted_ : best_},
            {"front", front_},
            {"others", others_},
            {"values", std::move(values)},
            {"values_left_out", std::move(more)}};
  }

 private:
  struct OfValue {
    std::string value;
    std::uint64_t variants = 0, fits = 0;
    Json fastest = nullptr;
  };

  /// What is varied, by the place of each value in the list of the store's first line.
  struct Varied {
    std::string pointer;
    std::map<std::string, std::size_t> ranks{};
    std::map<std::size_t, OfValue> found{};
    std::set<std::size_t> left_out{};

    std::size_t rank(const std::string& value) {
      return ranks.try_emplace(value, ranks.size()).first->second;
    }
  };

  Varied& varied_at(const std::string& pointer) {
    const auto there = std::ranges::find(varied_, pointer, &Varied::pointer);
    if (there != varied_.end()) return *there;
    varied_.push_back({.pointer = pointer});
    return varied_.back();
  }

  void add_to_value(const std::string& pointer, const std::string& value, const Json& row,
                    bool fits) {
    Varied& varied = varied_at(pointer);
    const std::size_t rank = varied.rank(value);
    if (varied.found.size() >= most_values && !varied.found.contains(rank)) {
      varied.left_out.insert(rank);
      return;
    }
    OfValue& found = varied.found[rank];
    found.value = value;
    ++found.variants;
    if (!fits) return;
    ++found.fits;
    if (found.fastest.is_null() || faster_row(row, found.fastest)) found.fastest = row;
  }

  static void keep(std::vector<Json>& best, const Json& row) {
    if (best.size() == most_best && !faster_row(row, best.back())) return;
    best.insert(std::ranges::upper_bound(best, row, faster_row), row);
    if (best.size() > most_best) best.pop_back();
  }

  /// Every `stride_`-th row that fits or may: an even sample of a store of any length.
  void add_to_sample(const Json& row) {
    if (candidates_++ % stride_ != 0) return;
    others_.push_back(row);
    if (others_.size() < 2 * most_others) return;
    for (std::size_t i = 1; i < most_others; ++i) others_[i] = std::move(others_[2 * i]);
    others_.resize(most_others);
    stride_ *= 2;
  }

  /// By time; memory falls from each to the next.
  void add_to_front(const Json& row) {
    const auto beats = [](const Json& a, const Json& b) {
      return time_of_million(a) <= time_of_million(b) && bytes_of(a) <= bytes_of(b);
    };
    if (std::ranges::any_of(front_, [&](const Json& each) { return beats(each, row); })) return;
    std::erase_if(front_, [&](const Json& each) { return beats(row, each); });
    front_.insert(std::ranges::upper_bound(front_, row, faster_row), row);
  }

  std::uint64_t rows_ = 0, refused_ = 0, fits_ = 0, doubtful_ = 0;
  std::uint64_t candidates_ = 0, stride_ = 1;  // of the sample
  Json first_refused_ = nullptr;
  std::vector<Json> best_, doubted_, front_, others_;
  std::vector<Varied> varied_;
};

/// "shard 2 of 8"; nothing where the store is of a whole sweep.
std::string shard_words(const Node& root) {
  const auto shard = root.find("shard");
  if (!shard) return {};
  return fmt::format("shard {} of {}", count_words(figure_at(*shard, "number")),
                     count_words(figure_at(*shard, "of")));
}

/// Variants of the store once it is complete: of the sweep, or of its shard.
double asked_variants(const Node& root) {
  constexpr auto most = std::numeric_limits<std::int64_t>::max();
  const auto variants = static_cast<std::uint64_t>(root["variants"].integer(0, most));
  const auto stated = root.find("shard");
  if (!stated) return static_cast<double>(variants);
  const std::int64_t of = (*stated)["of"].integer(1, most_shards);
  const std::int64_t number = (*stated)["number"].integer(1, of);
  const SweepShard shard{.number = static_cast<std::uint64_t>(number),
                         .of = static_cast<std::uint64_t>(of)};
  return static_cast<double>(shard.end(variants) - shard.begin(variants));
}

Card variants_card(const Node& root) {
  const double rows = figure_at(root, "rows"), asked = asked_variants(root);
  std::string rest = rows < asked
                         ? fmt::format("of {}; the rest is not there", count_words(asked))
                         : fmt::format("{} impossible", count_words(figure_at(root, "refused")));
  if (root.has("shard")) {
    rest += fmt::format("; the whole sweep has {}", count_words(figure_at(root, "variants")));
  }
  return {"variants", count_words(rows), rest};
}

Card fit_card(const Node& root) {
  const double fits = figure_at(root, "fits"), doubtful = figure_at(root, "doubtful");
  const double possible = figure_at(root, "rows") - figure_at(root, "refused");
  return {
      "fit", count_words(fits - doubtful),
      fmt::format("{} may not, {} do not", count_words(doubtful), count_words(possible - fits))};
}

ScatterPoint point_of_row(const Json& row, bool best) {
  const double time = time_of_million(row), bytes = bytes_of(row);
  const double factor = time / row.at("step_time_s").get<double>();
  const Json& range = row.at("uncertainty");
  return {.label = row_label(row),
          .x = {"", factor * range.at("p10").get<double>(), time,
                factor * range.at("p90").get<double>()},
          .y = {"", bytes, bytes, bytes},
          .best = best};
}

std::string best_table(const Node& root) {
  HtmlTable table{{">", "values", "time of a million tokens", ">step", ">8 of 10", ">MFU",
                   ">memory", "fit", ">$ a step", ">days"}};
  const auto& rows = root["best"].json();
  const double slowest = time_of_million(rows.back());
  std::size_t rank = 0;
  for (const Node& each : root["best"].elements()) {
    const Json& row = each.json();
    const auto cost = figure_if(each, "cost_usd_per_step"), days = figure_if(each, "days");
    const ChartRange range = range_of(each["uncertainty"], "");
    table.add({std::to_string(++rank), code_cell(row_label(row)),
               bar_cell(time_words(time_of_million(row)), time_of_million(row), slowest),
               time_words(figure_at(each, "step_time_s")),
               fmt::format("{} to {}", time_words(range.p10), time_words(range.p90)),
               share_text(figure_at(each, "mfu")), size_words(figure_at(each, "peak_memory_bytes")),
               markup(fit_answer(words(each, "fit")).first), cost ? dollar_words(*cost) : "",
               days ? fmt::format("{:.1f}", *days) : ""});
  }
  return table.html();
}

std::string values_table(const Node& root) {
  HtmlTable table{{"pointer", "value", ">variants", ">that fit", "fastest million tokens"}};
  double slowest = 0;
  const std::vector<Node> all = root["values"].elements();
  for (const Node& each : all) {
    if (each.find("fastest")) {
      slowest = std::max(slowest, time_of_million(each["fastest"].json()));
    }
  }
  std::string last;
  for (const Node& each : all) {
    const std::string pointer = words(each, "pointer");
    std::string fastest;
    if (each.find("fastest")) {
      const double time = time_of_million(each["fastest"].json());
      fastest = bar_cell(time_words(time), time, slowest);
    }
    table.add({pointer == last ? "" : code_cell(pointer), markup(words(each, "value")),
               count_words(figure_at(each, "variants")), count_words(figure_at(each, "fits")),
               fastest});
    last = pointer;
  }
  std::string text = table.html();
  for (const Node& each : root["values_left_out"].elements()) {
    text += tag(
        "p",
        fmt::format("and {} more of {}: the first {} that the store has are listed",
                    count_words(figure_at(each, "values")), words(each, "pointer"), most_values),
        "class='note'");
  }
  return text;
}

}  // namespace

bool begins_sweep_store(std::string_view text) {
  return text.starts_with(store_beginning);
}

Document sweep_document(std::istream& store, const std::string& name) {
  std::string line;
  std::getline(store, line);
  const Document header = Document::parse(line, name);
  for (const char* key : {"scenario", "vary", "variants", "shard"}) {
    if (!header.json().contains(key)) header.root()[key];  // says that it is missing
  }
  SweepRows rows{header.root()["vary"]};
  std::uint64_t number = 1;
  while (std::getline(store, line) && !store.eof()) {  // a line without an end is being written
    const Document row = Document::parse(line, fmt::format("{}, line {}", name, ++number));
    try {
      rows.add(row.json());
    } catch (const Json::exception&) {
      row.root().fail("expected a row of a sweep, with its values and figures");
    }
  }
  return Document::from(rows.json(header.json()), name);
}

std::string sweep_title(const Node& root) {
  const std::string shard = shard_words(root);
  return "Sweep of " + words(root, "scenario") + (shard.empty() ? "" : ", " + shard);
}

std::string sweep_section(const Node& root) {
  const std::vector<Node> best = root["best"].elements();
  std::vector<Card> all;
  if (best.empty()) {
    all.push_back({"answer", "no variant fits", words(root, "first_refused"), "bad first"});
  } else {
    const Json& fastest = best.front().json();
    all.push_back({"fastest step", time_words(figure_at(best.front(), "step_time_s")),
                   row_label(fastest), "first"});
    all.push_back({"MFU", share_text(figure_at(best.front(), "mfu")),
                   fmt::format("{} tokens/s",
                               count_words(std::round(figure_at(best.front(), "tokens_per_s"))))});
  }
  all.push_back(variants_card(root));
  all.push_back(fit_card(root));
  std::string text = cards(all);
  if (best.empty()) return text;
  ScatterChart chart{.points = {},
                     .x_title = "time of a million tokens",
                     .y_title = "memory",
                     .x_words = time_words,
                     .y_words = size_words};
  for (const Node& each : root["others"].elements()) {
    chart.points.push_back(point_of_row(each.json(), false));
  }
  for (const Node& each : root["front"].elements()) {
    chart.points.push_back(point_of_row(each.json(), true));
  }
  text += tag("h3", "Time against memory") + scatter_chart(chart);
  text += tag("p",
              fmt::format("Green: none is both faster and smaller; their whiskers hold 8 of 10 "
                          "cases. Grey: {} of {} variants that fit or may fit.",
                          count_words(static_cast<double>(root["others"].elements().size())),
                          count_words(figure_at(root, "fits"))),
              "class='note'");
  text += tag("h3", fmt::format("The fastest {}", best.size())) + best_table(root);
  return text + tag("h3", "What each value leads to") + values_table(root);
}

}  // namespace orrery::scenarios
