#include "models/software/published_recipes.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <utility>

#include "hardware/catalogue.hpp"
#include "models/embedded.hpp"
#include "models/plan/fields.hpp"
#include "models/software/resolved_profile.hpp"
#include "sim/errors.hpp"
#include "sim/input/csv.hpp"
#include "sim/input/text.hpp"

namespace orrery::models {

namespace {

constexpr std::string_view published = "models/recipes/published.csv";

struct RecipeLine {
  std::string stack, gpu, source;  // a GPU, or a vendor for all of its GPUs, or none: any
  std::string vendor;              // empty: any
  std::vector<Release> releases;
  std::optional<Precision> precision;  // nullopt: any
  std::optional<Task> task;            // nullopt: any
  std::int64_t hidden = 0, layers = 0, ffn_hidden = 0, experts = 0;
  RecipeDegrees degrees;
  std::vector<std::int64_t> gpus, batches;  // the sizes that it was published for; empty: any
  std::vector<std::pair<std::string, Json>> choices{};
};

std::vector<Release> releases_in(std::string_view list) {
  std::vector<Release> releases;
  if (list.empty()) return releases;
  for (const std::string_view each : split(list, ';')) releases.push_back(release_in(each));
  return releases;
}

/// The vendor of a shipped GPU; a vendor's own name as it is.
std::string vendor_of(const std::string& gpu) {
  static const auto known = [] {
    std::map<std::string, std::string, std::less<>> read;
    for (const std::string& name : hardware::Catalogue::gpus()) {
      read.emplace(name, hardware::Catalogue::gpu(name).value("vendor", ""));
    }
    return read;
  }();
  const auto found = known.find(gpu);
  return found == known.end() ? gpu : found->second;
}

/// "256;512" as a list.
std::vector<std::int64_t> sizes_in(std::string_view list) {
  std::vector<std::int64_t> sizes;
  if (list.empty()) return sizes;
  for (const std::string_view each : split(list, ';')) {
    sizes.push_back(number_in<std::int64_t>(each).value_or(0));
  }
  return sizes;
}

/// Every column after "expert" but the last is a key of a plan.
std::vector<std::string> keys_of(const Table& table) {
  const std::vector<std::string>& all = table.columns();
  const auto first = std::ranges::find(all, "expert") + 1;
  return {first, all.end() - 1};
}

/// The cell as a word of its table; nullopt where it is empty.
/// Errors  another word: ContractError, the table is ours
template <class Enum, std::size_t n>
std::optional<Enum> word_in(const Words<Enum, n>& words, std::string_view cell) {
  if (cell.empty()) return std::nullopt;
  const std::optional<Enum> value = value_of(words, cell);
  ensure(value.has_value(), "a published recipe has an unknown precision or task");
  return value;
}

RecipeLine read_line(const Row& row, const std::vector<std::string>& keys) {
  const auto count = [&](const char* column) { return row.integer(column).value_or(0); };
  RecipeLine line{.stack = std::string{row.text("stack")},
                  .gpu = std::string{row.text("gpu")},
                  .source = std::string{row.text("source")},
                  .vendor = vendor_of(std::string{row.text("gpu")}),
                  .releases = releases_in(row.text("releases")),
                  .precision = word_in(precision_words, row.text("precision")),
                  .task = word_in(task_words, row.text("task")),
                  .hidden = count("hidden"),
                  .layers = count("layers"),
                  .ffn_hidden = count("ffn_hidden"),
                  .experts = count("experts"),
                  .degrees = {.tensor = count("tensor"),
                              .pipeline = count("pipeline"),
                              .virtual_stages = count("virtual_stages"),
                              .context = count("context"),
                              .expert = count("expert")},
                  .gpus = sizes_in(row.text("gpus")),
                  .batches = sizes_in(row.text("global_batch"))};
  for (const std::string& key : keys) {
    const std::string_view cell = row.text(key);
    if (!cell.empty()) line.choices.emplace_back(key, plan_field(key).json_of(cell));
  }
  return line;
}

/// The header, and the lines that contain a number in any column: parsing all lines is slower.
std::string lines_that_name(std::int64_t number, std::string_view text) {
  const std::string cell = fmt::format(",{},", number);
  const std::size_t header = text.find('\n') + 1;
  std::string kept{text.substr(0, header)};
  for (std::size_t at = text.find(cell, header); at < text.size();) {
    const std::size_t begin = text.rfind('\n', at) + 1;
    const std::size_t end = std::min(text.find('\n', at), text.size() - 1) + 1;
    kept += text.substr(begin, end - begin);
    at = text.find(cell, end);
  }
  return kept;
}

/// hidden  nullopt: all lines
std::vector<RecipeLine> read_lines(std::optional<std::int64_t> hidden) {
  std::vector<RecipeLine> read;
  for (const EmbeddedFile& file : embedded_files()) {
    if (file.path != published) continue;
    const Table table =
        Table::parse(hidden ? lines_that_name(*hidden, file.text) : std::string{file.text},
                     std::string{file.path});
    const std::vector<std::string> keys = keys_of(table);
    for (std::size_t i = 0; i < table.size(); ++i) read.push_back(read_line(table[i], keys));
  }
  return read;
}

/// Lines of models of this width, and possibly of others; read once per width.
const std::vector<RecipeLine>& lines_for(std::int64_t hidden) {
  static std::mutex reading;
  static std::map<std::int64_t, std::vector<RecipeLine>> known;
  const std::lock_guard<std::mutex> lock{reading};
  const auto [at, fresh] = known.try_emplace(hidden);
  if (fresh) at->second = read_lines(hidden);
  return at->second;
}

/// Parent of every shipped profile; read once, since a search asks for each of its plans.
const std::map<std::string, std::string, std::less<>>& parents() {
  static const auto known = [] {
    std::map<std::string, std::string, std::less<>> read;
    for (const std::string& name : software_names()) {
      read.emplace(name, written_profile(name).value("parent", ""));
    }
    return read;
  }();
  return known;
}

/// Do two stacks share recipes? A profile does with its parent and its children, unless the parent
/// is the root of its line: a library, whose users' recipes are not its own.
bool share_recipes(std::string_view one, std::string_view other) {
  if (one == other) return true;
  const auto parent_of = [](std::string_view stack) -> std::string_view {
    const auto found = parents().find(stack);
    return found == parents().end() ? std::string_view{} : std::string_view{found->second};
  };
  const auto is_parent = [&](std::string_view stack, std::string_view of) {
    return parent_of(of) == stack && !parent_of(stack).empty();
  };
  return is_parent(one, other) || is_parent(other, one);
}

/// Is the recipe from the asked release's month or earlier? Patch releases ship their month's
/// recipes.
bool by_month_of(const Release& recipe, const Release& asked) {
  const auto month = [](const Release& release) {
    return std::pair{release.empty() ? 0 : release[0], release.size() < 2 ? 0 : release[1]};
  };
  return month(recipe) <= month(asked);
}

/// A line's latest release not after the asked one, or else a patch of the same month; null if the
/// line is newer.
const Release* last_by(const RecipeLine& line, const Release& asked) {
  const Release* last = nullptr;
  for (const Release& each : line.releases) {
    const bool known = asked.empty() || each <= asked;
    if (known || (last == nullptr && by_month_of(each, asked))) last = &each;
  }
  return last;
}

/// Do formats agree? Lines say only fp8, whichever of the fp8 scaling recipes the plan names.
bool same_format(Precision line, Precision asked) {
  const auto plain = [](Precision each) {
    const bool fp8 = each == Precision::fp8_current || each == Precision::fp8_block;
    return fp8 ? Precision::fp8 : each;
  };
  return line == plain(asked);
}

/// Do they agree on the GPU? A line that names none agrees with any, one that names a vendor with
/// all of the vendor's.
bool same_gpu(const RecipeLine& line, const RecipeQuestion& asked) {
  return line.gpu.empty() || line.gpu == asked.gpu.name || line.gpu == asked.gpu.vendor;
}

/// Is the recipe for GPUs of the asked one's vendor?
bool same_vendor(const RecipeLine& line, const RecipeQuestion& asked) {
  return line.vendor.empty() || line.vendor == asked.gpu.vendor;
}

/// Does the line name one GPU?
bool names_gpu(const RecipeLine& line, const RecipeQuestion& asked) {
  return !line.gpu.empty() && line.gpu != asked.gpu.vendor;
}

/// Do they agree on the format? A line that names none agrees with any.
bool same_format(const RecipeLine& line, const RecipeQuestion& asked) {
  return !line.precision || same_format(*line.precision, asked.precision);
}

/// Was the recipe published for this size? One that names none was for any, and so is a size that
/// is not known.
bool names(const std::vector<std::int64_t>& sizes, std::int64_t asked) {
  return sizes.empty() || asked == 0 || std::ranges::find(sizes, asked) != sizes.end();
}

/// Keeps the lines that agree; if none does, keeps all and returns false.
bool prefer(std::vector<const RecipeLine*>& left,
            const std::function<bool(const RecipeLine&)>& agrees) {
  const auto found = std::stable_partition(left.begin(), left.end(),
                                           [&](const RecipeLine* l) { return agrees(*l); });
  if (found == left.begin()) return false;
  left.erase(found, left.end());
  return true;
}

const RecipeLine* nearest(const RecipeQuestion& asked) {
  const Model& model = asked.model;
  const RecipeDegrees& degrees = asked.degrees;
  const std::int64_t width = usual_mlp(model).width, experts = usual_experts(model).count;
  std::vector<const RecipeLine*> left;
  std::string_view stack;  // of the line before
  bool shares = false;
  for (const RecipeLine& each : lines_for(model.hidden)) {
    const bool same = each.hidden == model.hidden && each.layers == model.layers.size() &&
                      each.ffn_hidden == width && each.experts == experts &&
                      (!each.task || each.task == asked.task);
    if (!same || !same_vendor(each, asked)) continue;
    if (each.stack != stack) {
      stack = each.stack;
      shares = share_recipes(asked.stack, stack);
    }
    if (shares && last_by(each, asked.release)) left.push_back(&each);
  }
  if (left.empty()) return nullptr;
  prefer(left, [&](const RecipeLine& each) { return same_gpu(each, asked); });
  prefer(left, [&](const RecipeLine& each) { return names_gpu(each, asked); });
  prefer(left, [&](const RecipeLine& each) { return each.degrees.expert == degrees.expert; });
  const bool same_degrees = prefer(left, [&](const RecipeLine& each) {
    return each.degrees.tensor == degrees.tensor && each.degrees.pipeline == degrees.pipeline;
  });
  if (!same_degrees)
    prefer(left, [&](const RecipeLine& each) { return each.stack == asked.stack; });
  prefer(left, [&](const RecipeLine& each) { return same_format(each, asked); });
  prefer(left, [&](const RecipeLine& each) { return each.precision.has_value(); });
  prefer(left, [&](const RecipeLine& each) {
    return each.degrees.virtual_stages == degrees.virtual_stages;
  });
  prefer(left, [&](const RecipeLine& each) { return each.degrees == degrees; });
  prefer(left, [&](const RecipeLine& each) { return names(each.batches, asked.global_batch); });
  prefer(left, [&](const RecipeLine& each) { return names(each.gpus, asked.gpus); });
  prefer(left, [&](const RecipeLine& each) {
    return asked.release.empty() || *last_by(each, asked.release) <= asked.release;
  });
  return *std::ranges::max_element(left, [&](const RecipeLine* a, const RecipeLine* b) {
    const auto age = [&](const RecipeLine& line) {
      return std::pair{*last_by(line, asked.release), std::ranges::min(line.releases)};
    };
    return age(*a) < age(*b);
  });
}

bool same_plan(const RecipeLine& line, const RecipeQuestion& asked) {
  return same_gpu(line, asked) && same_format(line, asked) && line.degrees == asked.degrees;
}

}  // namespace

std::vector<RecipeChoice> published_choices(const RecipeQuestion& question) {
  const RecipeLine* line = nearest(question);
  if (line == nullptr) return {};
  const bool exact = same_plan(*line, question);
  std::vector<RecipeChoice> choices;
  for (const auto& [key, value] : line->choices) {
    const bool of_plan = plan_field(key).recipe == PlanField::Recipe::of_one_plan;
    if (of_plan && !exact) continue;
    const std::string on = line->gpu.empty() ? "" : " on " + line->gpu;
    choices.push_back({key, value, line->source + on});
  }
  return choices;
}

RecipeShare recipe_share(std::string_view stack, std::string_view key, const Json& value) {
  static const std::vector<RecipeLine> all = read_lines(std::nullopt);
  RecipeShare share;
  for (const RecipeLine& line : all) {
    if (!share_recipes(stack, line.stack)) continue;
    for (const auto& [stated, chosen] : line.choices) {
      if (stated != key) continue;
      ++share.stating;
      if (chosen == value) ++share.with_value;
    }
  }
  return share;
}

}  // namespace orrery::models
