// Reader of lists of operations. A list is read again for each size of batch and cluster, because
// all of its numbers may depend on them.

#include "models/model/operation_list.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <set>

#include "models/model/import/families.hpp"

namespace orrery::models {

namespace {

constexpr std::int64_t most_size = std::int64_t{1} << 40, most_repeat = 4096;
constexpr std::size_t most_operations = 4096;  // of one layer
constexpr double most_bytes = 1e18;

/// What an entry may be, besides a group of operations.
constexpr std::array<std::string_view, 13> kind_words{
    "gemm", "conv",      "attention",  "memory",   "kernel", "norm", "elementwise",
    "pool", "embedding", "collective", "transfer", "host",   "file"};

/// Errors  a product above 2^53, which no memory holds: InputError at the node
std::int64_t product_of(const Node& node, const std::vector<std::int64_t>& all) {
  constexpr std::int64_t most = std::int64_t{1} << 53;
  std::int64_t product = 1;
  for (const std::int64_t each : all) {
    if (__builtin_mul_overflow(product, each, &product) || product > most) {
      node.fail("multiplies sizes to more than 2^53");
    }
  }
  return product;
}

/// The same of a number that is not counted yet.
std::int64_t counted(const Node& node, double number) {
  if (!(number < 0x1p53)) node.fail("multiplies sizes to more than 2^53");
  return static_cast<std::int64_t>(std::ceil(number));
}

/// Reads entries of one layer, with the values of its sizes.
class ListReader {
 public:
  ListReader(const NamedValues& values, bool trains, std::vector<ListedOperation>& made)
      : values_{values}, trains_{trains}, made_{made} {}

  void read(const Node& entries, std::size_t first, std::size_t last, const std::string& prefix) {
    for (std::size_t i = first; i < last; ++i) entry(entries.at(i), prefix);
  }

  /// A group's operations at one index of its repetition.
  void group(const Node& entry, std::int64_t index, const std::string& prefix) {
    const Node inside = entry["operations"];
    const bool named = entry.has("index");
    const std::string name = named ? entry["index"].as<std::string>() : std::string{};
    if (named) values_.set(name, static_cast<double>(index));
    read(inside, 0, inside.elements().size(), prefix);
  }

  /// `after`, once all operations are known.
  void resolve() {
    for (std::size_t i = 0; i < made_.size(); ++i) {
      for (const auto& [node, prefix] : waits_[i]) {
        auto text = node.as<std::string>();
        const std::size_t at = text.find('@');
        if (at != std::string::npos) {
          if (text.substr(at) != "@-1") node.fail("only @-1, the step before, is known");
          text.resize(at);
          if (trains_) node.fail("operations of the step before are known to a step list only");
          if (!found(text, prefix)) node.fail(unknown(text));
          continue;
        }
        const std::optional<std::size_t> earlier = found(text, prefix);
        if (earlier) {
          made_[i].after.push_back(*earlier);
        } else if (!trains_) {
          node.fail(unknown(text));
        } else {
          open_.push_back({node, text});
        }
      }
    }
  }
  /// Names that no operation of this layer has.
  const std::vector<std::pair<Node, std::string>>& open() const { return open_; }

 private:
  std::string unknown(const std::string& text) const {
    std::string known;
    for (const ListedOperation& each : made_) known += " " + each.name;
    return fmt::format("no operation is named '{}'; known:{}", text, known);
  }

  /// The operation of that name, or the last one of the group of that name.
  std::optional<std::size_t> found(const std::string& text, const std::string& prefix) const {
    for (const std::string& name : {prefix + text, text}) {
      for (std::size_t i = made_.size(); i-- > 0;) {
        if (made_[i].name == name || made_[i].name.starts_with(name + ".")) return i;
      }
    }
    return std::nullopt;
  }

  void entry(const Node& node, const std::string& prefix) {
    const auto name = node["name"].as<std::string>();
    if (name.empty() || name.find('@') != std::string::npos) {
      node["name"].fail_expected("a name without '@'");
    }
    const std::int64_t times = node.has("repeat") ? whole(node["repeat"], 1, most_repeat) : 1;
    if (node.has("operations")) {
      node.only({"name", "repeat", "index", "operations", "note"});
      if (node["operations"].elements().empty()) node["operations"].fail_expected("operations");
      for (std::int64_t i = 0; i < times; ++i) {
        group(node, i,
              fmt::format("{}{}{}.", prefix, name, times > 1 ? fmt::format(".{}", i) : ""));
      }
      return;
    }
    for (std::int64_t i = 0; i < times; ++i) {
      if (made_.size() >= most_operations) node.fail("more than 4096 operations in one layer");
      ListedOperation made = operation(node);
      made.name = prefix + name + (times > 1 ? fmt::format(".{}", i) : "");
      if (std::ranges::find(made_, made.name, &ListedOperation::name) != made_.end()) {
        node["name"].fail(fmt::format("'{}' is the name of an earlier operation", made.name));
      }
      chain(node, made, prefix);
      std::vector<std::pair<Node, std::string>> waits;
      if (const auto after = node.find("after")) {
        for (const Node& each : after->elements()) waits.emplace_back(each, prefix);
      }
      made.after_stated = node.has("after");
      made_.push_back(std::move(made));
      waits_.push_back(std::move(waits));
    }
  }

  double number(const Node& node, double low = 0, double high = most_bytes) const {
    const double value = number_of(node, values_);
    if (value >= low && value <= high) return value;
    node.fail(fmt::format("expected a number from {:.6g} to {:.6g}, found {}{:.10g}", low, high,
                          node.is_string() ? node.as<std::string>() + " = " : "", value));
  }
  double number_or(const Node& node, std::string_view key, double otherwise) const {
    const auto member = node.find(key);
    return member ? number(*member) : otherwise;
  }
  std::int64_t whole(const Node& node, std::int64_t low = 1, std::int64_t high = most_size) const {
    return whole_number_of(node, values_, low, high);
  }
  std::int64_t whole_or(const Node& node, std::string_view key, std::int64_t otherwise,
                        std::int64_t low = 1) const {
    const auto member = node.find(key);
    return member ? whole(*member, low) : otherwise;
  }
  std::vector<std::int64_t> sizes(const Node& node) const {
    const std::vector<Node> all = node.elements();
    if (all.empty() || all.size() > 3) node.fail_expected("one to three sizes");
    std::vector<std::int64_t> read;
    for (const Node& each : all) read.push_back(whole(each));
    return read;
  }
  ListedTraffic traffic(const Node& node) const {
    return {number_or(node, "read", 0), number_or(node, "write", 0)};
  }

  /// Keys that every operation may have, and its own.
  static void only(const Node& node, std::initializer_list<std::string_view> own) {
    std::vector<std::string_view> keys{"name",  "kind",  "queue",  "after",
                                       "every", "waits", "repeat", "note"};
    keys.insert(keys.end(), own.begin(), own.end());
    node.only(keys);
  }

  ListedOperation operation(const Node& node) {
    ListedOperation made;
    const std::size_t kind = node["kind"].one_of(kind_words);
    made.word = kind_words[kind];
    made.place = node.place();
    made.queue = node.value_or<std::string>("queue", "");
    if (made.queue == "compute" || made.queue == "main") made.queue.clear();
    made.every = whole_or(node, "every", 1);
    if (const auto waits = node.find("waits")) {
      if (waits->as<std::string>() != "never") waits->fail_expected("\"never\"");
      made.never_waits = true;
    }
    if (made.every > 1 && trains_) node["every"].fail("is known to a step list only");
    if (const auto format = node.find("format")) made.format = format_of(*format);
    if (const auto work = node.find("work")) {
      work->only({"max_over_mean", "why"});
      made.uneven = number((*work)["max_over_mean"], 1, 1e6);
    }
    constexpr void (ListReader::*readers[])(const Node&, ListedOperation&)
        const = {&ListReader::gemm,        &ListReader::conv,     &ListReader::attention,
                 &ListReader::memory,      &ListReader::kernel,   &ListReader::norm,
                 &ListReader::elementwise, &ListReader::pool,     &ListReader::embedding,
                 &ListReader::collective,  &ListReader::transfer, &ListReader::host,
                 &ListReader::file};
    (this->*readers[kind])(node, made);
    if (const auto keeps = node.find("keeps")) {
      made.keeps = number(*keeps);
      made.keeps_bytes = true;
    }
    return made;
  }

  static hardware::DType format_of(const Node& node) {
    const auto text = node.as<std::string>();
    const auto type = hardware::dtype_named(text);
    if (!type || *type == hardware::DType::int64 || *type == hardware::DType::int32 ||
        *type == hardware::DType::uint8) {
      node.fail_expected(
          "one of \"fp64\", \"fp32\", \"tf32\", \"fp16\", \"bf16\", \"fp8\", \"fp4\"");
    }
    return *type;
  }

  void gemm(const Node& node, ListedOperation& made) const {
    only(node, {"m", "n", "k", "batch", "bias", "format", "keeps", "parameters", "input", "work",
                "backward"});
    made.kind = ListedKind::gemm;
    made.m = static_cast<std::int64_t>(std::ceil(number(node["m"], 1, 1e12)));
    made.n = whole(node["n"]);
    made.k = whole(node["k"]);
    made.products = whole_or(node, "batch", 1);
    product_of(node, {made.products, made.n, made.k});
    product_of(node, {made.products, made.m, made.k});
    product_of(node, {made.products, made.m, made.n});
    made.flops = 2.0 * static_cast<double>(made.m) * static_cast<double>(made.n) *
                 static_cast<double>(made.k) * static_cast<double>(made.products);
    const bool bias = node.value_or("bias", false);
    made.parameters =
        whole_or(node, "parameters", made.products * made.n * made.k + (bias ? made.n : 0), 0);
    reverse_of_matrix(node, made);
  }

  void conv(const Node& node, ListedOperation& made) const {
    only(node, {"images", "in", "out", "kernel", "stride", "size", "groups", "bias", "format",
                "keeps", "parameters", "input", "work", "backward"});
    made.kind = ListedKind::conv;
    ListedConvolution& own = made.convolution;
    own.images = whole(node["images"]);
    own.in = whole(node["in"]);
    own.out = whole(node["out"]);
    own.stride = whole_or(node, "stride", 1);
    own.groups = whole_or(node, "groups", 1);
    own.size = sizes(node["size"]);
    const std::vector<std::int64_t> kernel = sizes(node["kernel"]);
    if (kernel.size() != own.size.size()) {
      node["kernel"].fail(
          fmt::format("has {} extents, the size has {}", kernel.size(), own.size.size()));
    }
    own.taps = product_of(node["kernel"], kernel);
    own.outputs = product_of(node["size"], own.size);
    product_of(node, {own.images, own.outputs, own.out});
    product_of(node, {own.images, own.outputs, own.in, own.taps});
    product_of(node, {own.out, own.in, own.taps});
    if (own.in % own.groups != 0 || own.out % own.groups != 0) {
      node["groups"].fail(fmt::format("{} does not divide both the {} channels in and the {} out",
                                      own.groups, own.in, own.out));
    }
    made.m = own.images * own.outputs;
    made.n = own.out / own.groups;
    made.k = own.in / own.groups * own.taps;
    made.products = own.groups;
    made.flops = 2.0 * static_cast<double>(made.m) * static_cast<double>(own.out) *
                 static_cast<double>(made.k);
    const bool bias = node.value_or("bias", false);
    made.parameters = whole_or(node, "parameters", own.out * made.k + (bias ? own.out : 0), 0);
    reverse_of_matrix(node, made);
  }

  void attention(const Node& node, ListedOperation& made) const {
    only(node, {"sequences", "queries", "keys", "heads", "head_dim", "mask", "window", "format",
                "keeps", "work", "backward"});
    made.kind = ListedKind::attention;
    ListedAttention& own = made.attention;
    own.sequences = whole(node["sequences"]);
    own.queries = whole(node["queries"]);
    own.keys = whole_or(node, "keys", own.queries);
    own.heads = whole(node["heads"], 1, Limits::heads);
    own.head_dim = whole(node["head_dim"], 1, Limits::head_dim);
    product_of(node, {own.sequences, std::max(own.queries, own.keys), own.heads, own.head_dim});
    const auto mask = node.find("mask");
    own.causal = mask && mask->one_of({"none", "causal"}) == 1;
    own.window = whole_or(node, "window", 0, 0);
    if (own.causal && own.keys != own.queries) {
      node["keys"].fail(
          fmt::format("a causal mask needs as many keys as queries, {}", own.queries));
    }
    if (own.window > 0 && !own.causal) node["window"].fail("a window needs the causal mask");
    const auto q = static_cast<double>(own.queries), s = static_cast<double>(own.keys);
    const auto w = static_cast<double>(own.window > 0 ? std::min(own.window, own.keys) : own.keys);
    const double pairs = own.causal ? w * s - w * w / 2 : q * s;
    made.flops = 4.0 * static_cast<double>(own.sequences * own.heads * own.head_dim) * pairs;
    reverse_of_matrix(node, made);
  }

  /// Backward of products: the gradients of both operands.
  void reverse_of_matrix(const Node& node, ListedOperation& made) const {
    made.reverses = trains_;
    const auto backward = node.find("backward");
    if (!backward) return;
    if (!backward->is_string() || backward->one_of({"none", "derived"}) == 0) {
      if (!backward->is_string()) backward->fail_expected("\"derived\" or \"none\"");
      made.reverses = false;
    }
  }

  /// Backward as stated: its traffic and FLOPs, or none.
  bool stated_reverse(const Node& node, ListedOperation& made) const {
    const auto backward = node.find("backward");
    if (!backward) return false;
    if (backward->is_string()) {
      backward->one_of({"none"});
      return true;
    }
    backward->only({"read", "write", "flops"});
    made.reverse_traffic = traffic(*backward);
    made.reverse_flops = number_or(*backward, "flops", 0);
    made.reverses = true;
    return true;
  }

  static bool no_reverse(const Node& node) {
    const auto backward = node.find("backward");
    if (backward) backward->one_of({"none"});
    return backward.has_value();
  }

  void memory(const Node& node, ListedOperation& made) const {
    only(node, {"read", "write", "backward", "keeps", "parameters", "format", "work"});
    made.kind = ListedKind::memory;
    made.traffic = traffic(node);
    made.parameters = whole_or(node, "parameters", 0, 0);
    made.keeps = 0;
    if (!stated_reverse(node, made) && trains_ && !updates_) {
      node.fail("backward is missing; state what it reads and writes, or \"none\"");
    }
  }

  void kernel(const Node& node, ListedOperation& made) const {
    only(node, {"key", "flops", "read", "write", "access", "backward", "keeps", "parameters",
                "format", "work"});
    made.kind = ListedKind::kernel;
    made.key = node["key"].as<std::string>();
    made.flops = number_or(node, "flops", 0);
    made.traffic = traffic(node);
    made.parameters = whole_or(node, "parameters", 0, 0);
    made.keeps = 0;
    if (const auto access = node.find("access")) {
      made.gathers = access->one_of({"stream", "gather"}) == 1;
    }
    if (stated_reverse(node, made) || !trains_) return;
    made.reverses = made.reverse_assumed = true;
    made.reverse_flops = 2 * made.flops;
    made.reverse_traffic = {2 * made.traffic.read, 2 * made.traffic.write};
  }

  /// Statistics and the normalised values are two passes of a batch norm, one of any other;
  /// backward reads input and gradient as often. `adds`: tensors that the same kernel adds.
  void norm(const Node& node, ListedOperation& made) const {
    only(node, {"elements", "width", "norm", "adds", "keeps", "parameters", "format", "work",
                "backward"});
    made.kind = ListedKind::memory;
    const double elements = number(node["elements"]);
    const auto which = node.find("norm");
    const bool batch = which && which->one_of({"layer", "rms", "group", "batch"}) == 3;
    const bool scale_only = which && which->as<std::string>() == "rms";
    const double passes = batch ? 2 : 1;
    made.in_elements = true;
    const auto adds = static_cast<double>(whole_or(node, "adds", 0, 0));
    made.traffic = {(passes + adds) * elements, elements};
    made.reverse_traffic = {(2 * passes + adds) * elements, (1 + adds) * elements};
    made.reverses = trains_ && !no_reverse(node);
    made.keeps = elements;
    const std::int64_t width = whole(node["width"]);
    made.parameters = whole_or(node, "parameters", width * (scale_only ? 1 : 2), 0);
  }

  void elementwise(const Node& node, ListedOperation& made) const {
    only(node,
         {"elements", "inputs", "outputs", "keeps", "parameters", "format", "work", "backward"});
    made.kind = ListedKind::memory;
    const double elements = number(node["elements"]);
    const auto inputs = static_cast<double>(whole_or(node, "inputs", 1, 0));
    const auto outputs = static_cast<double>(whole_or(node, "outputs", 1, 0));
    made.in_elements = true;
    made.traffic = {inputs * elements, outputs * elements};
    made.reverse_traffic = {(inputs + outputs) * elements, inputs * elements};
    made.reverses = trains_ && !no_reverse(node);
    made.keeps = elements;
    made.parameters = whole_or(node, "parameters", 0, 0);
  }

  void pool(const Node& node, ListedOperation& made) const {
    only(node, {"images", "channels", "size", "stride", "keeps", "format", "work", "backward"});
    made.kind = ListedKind::memory;
    const std::vector<std::int64_t> size = sizes(node["size"]);
    const double out =
        static_cast<double>(product_of(node, {whole(node["images"]), whole(node["channels"])})) *
        static_cast<double>(product_of(node["size"], size));
    const auto stride = static_cast<double>(whole_or(node, "stride", 1));
    const double in = out * std::pow(stride, static_cast<double>(size.size()));
    made.in_elements = true;
    made.traffic = {in, out};
    made.reverse_traffic = {out, in};
    made.reverses = trains_ && !no_reverse(node);
    made.keeps = 0;
  }

  /// Rows of a table, summed in bags of `pooled`. A sharded table has different rows on every rank;
  /// only the touched ones are updated, where they are.
  void embedding(const Node& node, ListedOperation& made) const {
    only(node, {"rows", "width", "lookups", "pooled", "sharded", "keeps", "format", "work"});
    made.kind = ListedKind::kernel;
    made.key = "embedding";
    made.gathers = true;
    const auto width = static_cast<double>(whole(node["width"]));
    const double read = number(node["lookups"]) * width;
    const auto pooled = node.find("pooled");
    const double written = read / (pooled ? number(*pooled, 1) : 1);
    made.in_elements = true;
    made.traffic = {read, written};
    made.sharded = node.value_or("sharded", false);
    // Gradients are read once for each row; the update reads and writes row and state.
    made.reverse_traffic = {written + (made.sharded ? 2 : 1) * read, (made.sharded ? 2 : 1) * read};
    made.reverses = trains_;
    made.keeps = 0;
    const double rows = number(node["rows"], 1);
    const double ranks = made.sharded && values_.has("gpus") ? values_.at("gpus") : 1;
    made.parameters = counted(node, std::ceil(rows / ranks) * width);
  }

  void collective(const Node& node, ListedOperation& made) const {
    only(node, {"collective", "group", "bytes", "bucket_bytes", "overlaps", "work"});
    made.kind = ListedKind::collective;
    made.collective = node["collective"].as<std::string>();
    node["collective"].one_of(
        {"all_reduce", "all_gather", "reduce_scatter", "broadcast", "all_to_all"});
    made.group = node["group"].as<std::string>();
    made.bytes = number(node["bytes"]);
    made.bucket = static_cast<std::int64_t>(number_or(node, "bucket_bytes", 0));
    made.reverses = trains_;
    if (const auto overlaps = node.find("overlaps")) {
      overlaps->one_of({"backward"});
      made.overlaps = true;
    }
  }

  void transfer(const Node& node, ListedOperation& made) const {
    only(node, {"to", "bytes", "bytes_each", "grid", "neighbours", "serial", "ahead", "work"});
    made.kind = ListedKind::transfer;
    constexpr std::string_view ends[] = {"gpu", "host", "neighbours"};
    made.to = ends[node["to"].one_of(ends)];
    made.ahead = whole_or(node, "ahead", 0, 0);
    if (made.to != "neighbours") {
      made.bytes = number(node["bytes"]);
      return;
    }
    made.bytes = number(node["bytes_each"]);
    made.grid = sizes(node["grid"]);
    made.by_axis = node.has("serial");
    if (made.by_axis && node["serial"].as<std::string>() != "by axis") {
      node["serial"].fail_expected("\"by axis\"");
    }
    if (values_.has("gpus")) {
      const auto gpus = static_cast<std::int64_t>(values_.at("gpus"));
      if (product_of(node["grid"], made.grid) != gpus) {
        node["grid"].fail(fmt::format(
            "{} is a grid of {} ranks, there are {} GPUs; grid(gpus, {}, 0), grid(gpus, {}, 1), "
            "... are whole factors of any number",
            fmt::join(made.grid, " x "), product_of(node["grid"], made.grid), gpus,
            made.grid.size(), made.grid.size()));
      }
    }
    const auto neighbours = node.find("neighbours");
    if (!neighbours) return;
    constexpr std::string_view known[] = {"+x", "-x", "+y", "-y", "+z", "-z"};
    for (const Node& each : neighbours->elements()) {
      if (each.one_of(known) / 2 >= made.grid.size()) each.fail("the grid has no such axis");
    }
  }

  void host(const Node& node, ListedOperation& made) const {
    only(node, {"seconds", "needs", "ahead"});
    made.kind = ListedKind::host;
    made.host = from_seconds(number(node["seconds"], 0, 1e6));
    made.ahead = whole_or(node, "ahead", 0, 0);
    if (const auto needs = node.find("needs")) needs->one_of({"gpu"});
  }

  void file(const Node& node, ListedOperation& made) const {
    only(node, {"direction", "bytes", "files", "storage", "ahead"});
    made.kind = ListedKind::file;
    made.writes_files = node["direction"].one_of({"read", "write"}) == 1;
    made.bytes = number(node["bytes"]);
    number_or(node, "files", 0);
    made.key = node.value_or<std::string>("storage", "");
    made.ahead = whole_or(node, "ahead", 0, 0);
  }

  /// Channels and sizes of an operation that names its input.
  void chain(const Node& node, const ListedOperation& made, const std::string& prefix) const {
    const auto input = node.find("input");
    if (!input) return;
    const auto text = input->as<std::string>();
    const std::optional<std::size_t> at = found(text, prefix);
    if (!at) input->fail(unknown(text));
    const ListedOperation& source = made_[*at];
    const std::int64_t gives = source.kind == ListedKind::conv   ? source.convolution.out
                               : source.kind == ListedKind::gemm ? source.n
                                                                 : 0;
    const std::int64_t takes = made.kind == ListedKind::conv ? made.convolution.in : made.k;
    if (gives == 0) input->fail(fmt::format("'{}' is neither a gemm nor a conv", text));
    if (gives != takes) {
      node[made.kind == ListedKind::conv ? "in" : "k"].fail(
          fmt::format("{} channels do not follow the {} of '{}'", takes, gives, text));
    }
    if (made.kind != ListedKind::conv || source.kind != ListedKind::conv) return;
    for (std::size_t axis = 0; axis < made.convolution.size.size(); ++axis) {
      if (axis >= source.convolution.size.size()) break;
      const std::int64_t in = source.convolution.size[axis], stride = made.convolution.stride;
      if (made.convolution.size[axis] <= (in + stride - 1) / stride) continue;
      node["size"].at(axis).fail(
          fmt::format("{} positions do not follow the {} of '{}' at stride {}",
                      made.convolution.size[axis], in, text, stride));
    }
  }

  NamedValues values_;
  bool trains_, updates_ = false;
  std::vector<ListedOperation>& made_;
  std::vector<std::vector<std::pair<Node, std::string>>> waits_;
  std::vector<std::pair<Node, std::string>> open_;

 public:
  void of_update() { updates_ = true; }
};

bool is_communication(const ListedOperation& each) {
  return each.kind == ListedKind::collective || each.kind == ListedKind::transfer;
}

/// An order in which each operation follows those that it waits for and the earlier ones of its
/// queue: of several that may come next, one that waits for fewer messages.
/// Errors  a cycle: InputError at the operation that closes it
std::vector<ListedOperation> in_order(std::vector<ListedOperation> all) {
  const std::size_t n = all.size();
  std::vector<std::vector<std::size_t>> before(n);
  std::map<std::string, std::size_t> last;
  for (std::size_t i = 0; i < n; ++i) {
    before[i] = all[i].after;
    const auto previous = last.find(all[i].queue);
    if (previous != last.end()) before[i].push_back(previous->second);
    last[all[i].queue] = i;
  }
  std::vector<int> messages(n, 0);
  std::vector<bool> done(n, false);
  std::vector<std::size_t> place(n, 0);
  std::vector<ListedOperation> ordered;
  for (std::size_t count = 0; count < n; ++count) {
    std::optional<std::size_t> next;
    for (std::size_t i = 0; i < n; ++i) {
      if (done[i]) continue;
      const bool ready = std::ranges::all_of(before[i], [&](std::size_t b) { return done[b]; });
      if (!ready) continue;
      messages[i] = 0;
      for (const std::size_t b : before[i]) {
        messages[i] = std::max(messages[i], messages[b] + (is_communication(all[b]) ? 1 : 0));
      }
      if (!next || messages[i] < messages[*next]) next = i;
    }
    if (!next) {
      const auto stuck = std::ranges::find(done, false) - done.begin();
      const ListedOperation& first = all[static_cast<std::size_t>(stuck)];
      throw InputError{
          first.place + "/after",
          fmt::format("'{}' waits for itself, by `after` or by the order of its queue; "
                      "name a queue of its own, or '@-1' for the step before",
                      first.name)};
    }
    done[*next] = true;
    place[*next] = count;
    ordered.push_back(all[*next]);
  }
  for (ListedOperation& each : ordered) {
    for (std::size_t& b : each.after) b = place[b];
  }
  return ordered;
}

/// Does an entry, or one inside it, multiply by weights that are trained?
bool has_trained_product(const Json& entry) {
  if (!entry.is_object()) return false;
  const auto inside = entry.find("operations");
  if (inside != entry.end() && inside->is_array()) {
    return std::ranges::any_of(*inside, has_trained_product);
  }
  const auto kind = entry.find("kind");
  const bool product = kind != entry.end() && (*kind == "conv" || *kind == "gemm");
  const auto backward = entry.find("backward");
  return product && (backward == entry.end() || *backward != "none");
}

std::string kind_key(const Node& entry) {
  return entry["name"].as<std::string>();
}

}  // namespace

bool is_operation_list(const Node& config) {
  const auto format = config.find("format");
  return format && format->is_string() &&
         format->as<std::string>().starts_with("orrery-operations");
}

OperationList::OperationList(const Node& root)
    : json_(root.json()), file_{root.file()}, prefix_{root.pointer()} {
  const Node own = this->root();
  own.only({"format", "name", "source", "aliases", "parameters", "groups", "backward", "forward",
            "update", "step", "checks", "assumed", "run", "storage", "state", "note"});
  name_ = own["name"].as<std::string>();
  trains_ = own.has("forward");
  if (trains_ == own.has("step")) {
    own.fail("expected either 'forward', which is trained, or 'step', which is repeated");
  }
  if (const auto backward = own.find("backward")) backward->one_of({"reversed"});
  if (const auto assumed = own.find("assumed")) {
    for (const Node& each : assumed->elements()) assumed_.push_back(each.as<std::string>());
  }
  const NamedValues values = this->values({});
  const auto own_size = [&](const char* key, std::int64_t most) {
    if (!values.has(key)) return std::int64_t{0};
    return whole_number_of(own["parameters"][key], values, 1, most);
  };
  batch_ = own_size("batch", std::int64_t{1} << 24);
  gpus_ = own_size("gpus", std::int64_t{1} << 20);
  if (trains_ && batch_ == 0) {
    own.fail("/parameters/batch is missing: the samples of one GPU's step, which sizes depend on");
  }
  if (entries().elements().empty()) entries().fail_expected("operations");
  find_layers(values);
  check_layers();
  state();
  read_run();
}

NamedValues OperationList::values(const ListedSizes& sizes) const {
  std::map<std::string, double> taken;
  const Node own = root();
  const auto given = own.find("parameters");
  if (sizes.batch > 0) taken["batch"] = static_cast<double>(sizes.batch);
  if (sizes.gpus > 0) taken["gpus"] = static_cast<double>(sizes.gpus);
  return {given, taken};
}

void OperationList::find_layers(const NamedValues& values) {
  const Node list = entries();
  const std::size_t n = list.elements().size();
  const auto add = [&](ListedLayer layer) {
    layer.kind = static_cast<std::int64_t>(kinds_.size());
    kinds_.push_back(layer);
    layers_.push_back(layer);
  };
  if (!trains_) return add({.first = 0, .last = n});
  for (std::size_t i = 0; i < n;) {
    const Node entry = list.at(i);
    if (!entry.has("operations")) {
      std::size_t end = i;
      while (end < n && !list.at(end).has("operations")) ++end;
      add({.first = i, .last = end});
      i = end;
      continue;
    }
    const std::int64_t times =
        entry.has("repeat") ? whole_number_of(entry["repeat"], values, 1, most_repeat) : 1;
    const bool differs = entry.has("index");
    for (std::int64_t k = 0; k < times; ++k) {
      if (std::ssize(layers_) >= Limits::layers) entry.fail("more than 4096 layers");
      if (k == 0 || differs) {
        add({.first = i, .last = i + 1, .group = true, .index = k});
      } else {
        layers_.push_back(layers_.back());
      }
    }
    ++i;
  }
}

std::string OperationList::kind_name(std::int64_t kind) const {
  const ListedLayer& layer = kinds_.at(static_cast<std::size_t>(kind));
  const Node list = entries();
  if (!trains_) return "step";
  std::string name = kind_key(list.at(layer.first));
  if (layer.group && list.at(layer.first).has("index")) name += fmt::format(".{}", layer.index);
  if (!layer.group && layer.last - layer.first > 1) {
    name += " to " + kind_key(list.at(layer.last - 1));
  }
  return name;
}

std::vector<ListedOperation> OperationList::operations(std::int64_t kind,
                                                       const ListedSizes& sizes) const {
  const ListedLayer& layer = kinds_.at(static_cast<std::size_t>(kind));
  std::vector<ListedOperation> made;
  ListReader reader{values(sizes), trains_, made};
  const Node list = entries();
  if (layer.group) {
    const Node group = list.at(layer.first);
    group.only({"name", "repeat", "index", "operations", "note"});
    if (group["operations"].elements().empty()) group["operations"].fail_expected("operations");
    reader.group(group, layer.index, "");
  } else {
    reader.read(list, layer.first, layer.last, "");
  }
  reader.resolve();
  for (const auto& open : reader.open()) {
    const std::string& text = open.second;
    const std::vector<Node> all = list.elements();
    const bool earlier =
        std::any_of(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(layer.first),
                    [&](const Node& each) { return each["name"].as<std::string>() == text; });
    if (!earlier) open.first.fail(fmt::format("no earlier operation is named '{}'", text));
  }
  const auto is_product = [](const ListedOperation& each) {
    return each.reverses && (each.kind == ListedKind::gemm || each.kind == ListedKind::conv);
  };
  bool earlier = false;
  for (std::size_t i = 0; i < layer.first; ++i) earlier |= has_trained_product(list.at(i).json());
  if (trains_ && !earlier && layer.index == 0) {
    const auto first = std::ranges::find_if(made, is_product);
    if (first != made.end()) first->first = true;
  }
  return in_order(std::move(made));
}

std::vector<ListedOperation> OperationList::update(const ListedSizes& sizes) const {
  const Node own = root();
  const auto update = own.find("update");
  std::vector<ListedOperation> made;
  if (!update) return made;
  if (!trains_) update->fail("a step list has no update");
  NamedValues values = this->values(sizes);
  values.set("all_parameters", static_cast<double>(dense_));
  ListReader reader{values, true, made};
  reader.of_update();
  reader.read(*update, 0, update->elements().size(), "");
  reader.resolve();
  int gradients = 0;
  for (const ListedOperation& each : made) {
    const bool reduces = each.kind == ListedKind::collective;
    if (!reduces && each.kind != ListedKind::memory && each.kind != ListedKind::kernel) {
      throw InputError{
          each.place + "/kind",
          fmt::format("an update has a collective, memory and kernels, found '{}'", each.word)};
    }
    if (!reduces) continue;
    if (++gradients > 1 || each.collective != "all_reduce") {
      throw InputError{each.place,
                       "an update has one all_reduce, of the gradients of all parameters"};
    }
  }
  return made;
}

std::optional<OperationList::GradientSums> OperationList::gradient_sums() const {
  for (const ListedOperation& each : update({})) {
    if (each.kind != ListedKind::collective) continue;
    const double width = each.bytes / static_cast<double>(std::max<std::int64_t>(1, dense_));
    const bool known = std::abs(width - 4) < 1e-6 || std::abs(width - 2) < 1e-6;
    if (!known) {
      throw InputError{each.place + "/bytes",
                       fmt::format("expected 2 or 4 bytes for each of {} parameters, found {:.6g}",
                                   dense_, width)};
    }
    return GradientSums{std::llround(width), each.bucket, each.overlaps};
  }
  return std::nullopt;
}

std::vector<std::int64_t> OperationList::periods() const {
  std::set<std::int64_t> all;
  if (trains_) return {};
  for (const ListedOperation& each : operations(0)) all.insert(each.every);
  all.erase(1);
  return {all.begin(), all.end()};
}

std::vector<ListedState> OperationList::state(const ListedSizes& sizes) const {
  const Node own = root();
  const auto stated = own.find("state");
  if (!stated) return {};
  std::vector<ListedState> kept;
  const NamedValues values = this->values(sizes);
  for (const auto& [name, bytes] : stated->members()) {
    const double size = number_of(bytes, values);
    if (!(size >= 0 && size <= most_bytes)) bytes.fail_expected("bytes from 0 to 1e18");
    kept.push_back({name, static_cast<std::int64_t>(std::ceil(size))});
  }
  return kept;
}

Bandwidth OperationList::storage_rate(const std::string& storage, bool write) const {
  const Node own = root();
  const auto all = own.find("storage");
  const auto found = all ? all->find(storage) : std::nullopt;
  if (!found) own.fail(fmt::format("/storage states no storage '{}'", storage));
  found->only({"kind", "read_bytes_per_s", "write_bytes_per_s", "note"});
  if (const auto kind = found->find("kind")) kind->one_of({"shared"});
  const auto rate = found->find(write ? "write_bytes_per_s" : "read_bytes_per_s");
  if (!rate) return {};
  const double value = number_of(*rate, values({}));
  if (!(value > 0)) rate->fail_expected("a rate above 0");
  return Bandwidth{value};
}

std::int64_t OperationList::ranks_of(const std::string& group, const ListedSizes& sizes) const {
  const Node own = root();
  const auto groups = own.find("groups");
  const auto member = groups ? groups->find(group) : std::nullopt;
  if (!member) {
    std::string known;
    if (groups) {
      for (const auto& [name, node] : groups->members()) known += " " + name;
    }
    own.fail(fmt::format("no group is named '{}'; known:{}", group, known));
  }
  return whole_number_of(*member, values(sizes), 1, std::int64_t{1} << 20);
}

std::string OperationList::inner_group(const ListedSizes& sizes) const {
  const Node own = root();
  const auto groups = own.find("groups");
  if (!groups) return {};
  const std::int64_t all = sizes.gpus > 0 ? sizes.gpus : std::max<std::int64_t>(gpus_, 1);
  std::string inner;
  for (const auto& [name, node] : groups->members()) {
    const std::int64_t ranks = ranks_of(name, sizes);
    if (ranks == all || ranks == 1) continue;
    if (all % ranks != 0) {
      node.fail(fmt::format("a group of {} ranks does not divide the {} GPUs", ranks, all));
    }
    if (!inner.empty() && ranks_of(inner, sizes) != ranks) {
      node.fail(
          fmt::format("groups of two sizes below all GPUs are not simulated: '{}' has {} "
                      "ranks, '{}' {}",
                      inner, ranks_of(inner, sizes), name, ranks));
    }
    inner = name;
  }
  return inner;
}

void OperationList::check_layers() {
  std::vector<double> flops, matrix;
  std::vector<std::int64_t> parameters, dense;
  const ListedSizes sizes{.batch = batch_, .gpus = gpus_};
  for (std::int64_t kind = 0; kind < std::ssize(kinds_); ++kind) {
    double sum = 0, products = 0;
    std::int64_t own = 0, apart = 0;
    for (const ListedOperation& each : operations(kind)) {
      sum += each.flops;
      if (each.is_matrix()) products += each.flops;
      const bool cut = each.sharded && gpus_ > 0;
      own += each.parameters * (cut ? gpus_ : 1);
      if (!each.sharded && each.reverses) apart += each.parameters;
      if (!each.key.empty() && each.kind == ListedKind::file) {
        storage_rate(each.key, each.writes_files);
      }
      if (each.kind == ListedKind::collective) ranks_of(each.group, sizes);
    }
    flops.push_back(sum);
    matrix.push_back(products);
    parameters.push_back(own);
    dense.push_back(apart);
  }
  for (const ListedLayer& each : layers_) {
    const auto kind = static_cast<std::size_t>(each.kind);
    forward_flops_ += flops[kind];
    matrix_flops_ += matrix[kind];
    parameters_ += parameters[kind];
    dense_ += dense[kind];
  }
  const auto samples = static_cast<double>(trains_ ? batch_ : 1);
  forward_flops_ /= samples;
  matrix_flops_ /= samples;
  const Node own = root();
  gradient_sums();
  inner_group({});
  const auto checks = own.find("checks");
  if (!checks) return;
  checks->only({"parameters", "forward_macs_per_image", "forward_macs_per_sample"});
  for (const auto& [key, node] : checks->members()) {
    const double stated = number_of(node, values({}));
    const double found = key == "parameters" ? static_cast<double>(parameters_) : matrix_flops_ / 2;
    if (std::abs(stated - found) > 0.5) {
      node.fail(fmt::format("the operations add up to {:.0f}, not {:.0f}", found, stated));
    }
  }
}

void OperationList::read_run() {
  const auto run = root().find("run");
  if (!run) return;
  run->only({"steps", "per", "phases", "change", "note"});
  steps_ = number_of((*run)["steps"], values({}));
  if (!(steps_ >= 1 && steps_ <= 1e15)) (*run)["steps"].fail_expected("a number from 1 to 1e15");
  const auto phases = run->find("phases");
  if (!phases) return;
  if (trains_) phases->fail("are known to a step list only");
  const std::vector<Node> all = phases->elements();
  for (std::size_t i = 0; i < all.size(); ++i) {
    all[i].only({"gpus", "hours", "steps", "note"});
    ListedPhase phase{.gpus = all[i]["gpus"].integer(1, 1 << 20)};
    if (const auto hours = all[i].find("hours")) {
      phase.hours = number_of(*hours, values({}));
      if (!(*phase.hours > 0)) hours->fail_expected("hours above 0");
    } else if (all[i]["steps"].as<std::string>() != "rest") {
      all[i]["steps"].fail_expected("\"rest\"");
    }
    const bool last = i + 1 == all.size();
    if (phase.hours.has_value() == last) {
      all[i].fail(last ? "the last phase runs the rest of the steps: \"steps\": \"rest\""
                       : "only the last phase may run the rest of the steps; state its hours");
    }
    operations(0, {.gpus = phase.gpus});  // grids and groups must be whole there, too
    phases_.push_back(phase);
  }
  change({});
}

std::vector<ListedOperation> OperationList::change(const ListedSizes& sizes) const {
  std::vector<ListedOperation> made;
  const auto run = root().find("run");
  const auto change = run ? run->find("change") : std::nullopt;
  if (!change) return made;
  std::size_t at = 0;
  for (const Node& each : change->elements()) {
    Json named = each.json();
    if (named.is_object()) named["name"] = fmt::format("change {}", at++);
    const Node entry{named, each.file(), each.pointer()};
    ListReader reader{values(sizes), false, made};
    entry["kind"].one_of({"file", "host"});
    const Json list = Json::array({named});
    const Node alone{list, each.file(), each.pointer()};
    reader.read(alone, 0, 1, "");
  }
  return made;
}

/// A list of operations as a model: its samples are sequences of one token.
Model read_operation_list(const Node& config) {
  Model model;
  model.list = std::make_shared<const OperationList>(config);
  const OperationList& list = *model.list;
  model.name = list.name();
  model.type = "operations";
  model.family = Family::other;
  model.causal = false;
  model.hidden = 1;
  model.embedding.max_positions = 1;
  model.embedding.positions = Positions::none;
  model.embedding.tied = false;
  model.norms.final = false;
  for (std::int64_t layer = 0; layer < list.layers(); ++layer) {
    model.layers.push_back({ListedPart{model.list, list.kind_of(layer)}, NoPart{}});
  }
  model.parameters = model.active_parameters = list.parameters();
  model.formula = "the sum over its operations";
  return model;
}

}  // namespace orrery::models
