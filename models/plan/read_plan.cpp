#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>

#include "models/plan/plan.hpp"

namespace orrery::models {
namespace {

constexpr std::array precision_names{"fp32", "tf32", "fp16", "bf16", "fp8", "fp64"};
constexpr std::array compression_names{"none", "fp16", "top-k"};
constexpr std::array recompute_names{"none", "selective", "full"};

/// Reads members of a plan and notes each default taken.
class PlanReader {
 public:
  PlanReader(const Node& plan, std::vector<std::string>& assumptions)
      : plan_{plan}, assumptions_{assumptions} {}

  /// `reason`: how a value that is not there came about.
  std::int64_t count(std::string_view key, std::int64_t high, std::int64_t otherwise,
                     std::string_view reason = "taken as default") {
    const auto member = plan_.find(key);
    if (member) return member->integer(1, high);
    assume(key, fmt::format("{} {}", otherwise, reason));
    return otherwise;
  }

  bool flag(std::string_view key, bool otherwise) {
    const auto member = plan_.find(key);
    if (member) return member->as<bool>();
    assume(key, fmt::format("{} taken as default", otherwise));
    return otherwise;
  }

  std::optional<Node> word(std::string_view key, std::string_view otherwise) {
    const auto member = plan_.find(key);
    if (!member) assume(key, fmt::format("{} taken as default", otherwise));
    return member;
  }

  void assume(std::string_view key, std::string_view what) {
    assumptions_.push_back(fmt::format("{}/{}: {}", plan_.pointer(), key, what));
  }

 private:
  const Node& plan_;
  std::vector<std::string>& assumptions_;
};

/// What training stacks can do and Orrery does not simulate yet.
void refuse_unsimulated(const Node& plan) {
  for (const char* degree : {"context", "expert"}) {
    const auto member = plan.find(degree);
    const std::int64_t value = member ? member->integer(1, most_gpus) : 1;
    if (value > 1) {
      member->fail(fmt::format("{} {} is not simulated yet; known: 1", degree, value));
    }
  }
  const auto offload = plan.find("offload");
  if (offload && offload->json() != "none" && offload->json() != false) {
    offload->fail("offloading is not simulated yet; known: none");
  }
}

Zero read_zero(PlanReader& reader) {
  const auto member = reader.word("zero", "0");
  return static_cast<Zero>(member ? member->integer(0, 3) : 0);
}

void read_kinds(const Node& json, PlanReader& reader, Plan& plan) {
  const bool interleaves = plan.virtual_stages > 1;
  plan.schedule = interleaves ? "interleaved-1f1b" : "1f1b";
  if (const auto word = reader.word("schedule", plan.schedule)) {
    plan.schedule = word->as<std::string>();
    if (plan.schedule == "interleaved") plan.schedule = "interleaved-1f1b";
  }
  if (const auto word = reader.word("precision", "bf16")) {
    plan.precision =
        static_cast<Precision>(word->one_of({"fp32", "tf32", "fp16", "bf16", "fp8", "fp64"}));
  }
  if (const auto word = reader.word("recompute", "none")) {
    plan.recompute = static_cast<Recompute>(word->one_of({"none", "selective", "full"}));
  }
  plan.zero = read_zero(reader);
  plan.overlap_gradients = reader.flag("overlap", true);
  if (const auto bytes = json.find("bucket")) {
    plan.bucket = bytes->as<Bytes>();
  } else {
    reader.assume("bucket", "the software's gradient bucket taken as default");
  }
}

void read_compression(const Node& json, Plan& plan) {
  if (const auto word = json.find("compression")) {
    plan.compression = static_cast<Compression>(word->one_of({"none", "fp16", "top-k"}));
  }
  const auto share = json.find("compression_share");
  if (!share) return;
  if (plan.compression != Compression::top_k) share->fail("is for compression top-k alone");
  plan.compression_share = share->as<double>();
  if (!(plan.compression_share > 0 && plan.compression_share <= 1)) {
    share->fail_expected("a number above 0, at most 1");
  }
}

void read_layers(const Node& json, PlanReader& reader, Plan& plan) {
  plan.embedding_counts = json.value_or("embedding_counts", false);
  const auto list = json.find("stage_layers");
  if (!list) {
    const bool cut = plan.chunks() > 1 && !json.has("embedding_counts");
    if (cut) reader.assume("stage_layers", "as even as possible taken as default");
    return;
  }
  for (const Node& layers : list->elements()) {
    plan.stage_layers.push_back(layers.integer(0, most_virtual_stages));
  }
  if (plan.stage_layers.empty()) list->fail("is empty; leave it out for an even split");
}

std::string_view words_of(Positions positions) {
  switch (positions) {
    case Positions::rotary:
      return "rotary angles";
    case Positions::alibi:
      return "biases by distance";
    default:
      return "layers, which see no positions,";
  }
}

std::int64_t read_seq_len(const Node& json, PlanReader& reader, const Model& model) {
  if (model.max_positions < 1 && !json.has("seq_len")) {
    json.fail("seq_len is missing, and the model states no longest sequence");
  }
  const std::int64_t length = reader.count("seq_len", most_seq_len, model.max_positions,
                                           "taken from the model's longest sequence");
  // Learned positions end where their table does: a conflict of the plan.
  if (model.max_positions > 0 && length > model.max_positions &&
      model.positions != Positions::learned) {
    reader.assume("seq_len", fmt::format("{} is beyond the model's {} positions, which it was made "
                                         "for; its {} go on",
                                         length, model.max_positions, words_of(model.positions)));
  }
  return length;
}

}  // namespace

std::string_view name(Precision precision) {
  return precision_names[static_cast<std::size_t>(precision)];
}
std::string_view name(Compression compression) {
  return compression_names[static_cast<std::size_t>(compression)];
}
std::string_view name(Recompute recompute) {
  return recompute_names[static_cast<std::size_t>(recompute)];
}

Plan read_plan(const Node& plan, const Model& model, std::int64_t gpus,
               std::vector<std::string>& assumptions) {
  plan.only({"tensor",
             "sequence",
             "context",
             "pipeline",
             "virtual_stages",
             "schedule",
             "expert",
             "data",
             "zero",
             "micro_batch",
             "global_batch",
             "seq_len",
             "precision",
             "recompute",
             "offload",
             "overlap",
             "bucket",
             "compression",
             "compression_share",
             "stage_layers",
             "embedding_counts",
             "cuda_graphs"});
  refuse_unsimulated(plan);
  PlanReader reader{plan, assumptions};
  Plan read;
  read.tensor = reader.count("tensor", most_gpus, 1);
  read.sequence_parallel = reader.flag("sequence", false);
  read.pipeline = reader.count("pipeline", most_gpus, 1);
  read.virtual_stages = reader.count("virtual_stages", most_virtual_stages, 1);
  read.data = reader.count("data", most_gpus,
                           std::max<std::int64_t>(1, gpus / (read.tensor * read.pipeline)),
                           "derived from the cluster's GPUs over tensor and pipeline");
  read.micro_batch = reader.count("micro_batch", most_gpus, 1);
  read.global_batch =
      reader.count("global_batch", most_batch, read.data * read.micro_batch * read.pipeline,
                   "taken as data x micro_batch x pipeline");
  read.seq_len = read_seq_len(plan, reader, model);
  read_kinds(plan, reader, read);
  read_compression(plan, read);
  read_layers(plan, reader, read);
  read.cuda_graphs = plan.value_or("cuda_graphs", false);
  return read;
}

std::int64_t kept_by_top_k(const Plan& plan, std::int64_t elements) {
  const double kept = plan.compression_share * static_cast<double>(elements);
  return std::max<std::int64_t>(1, static_cast<std::int64_t>(kept));
}

Json to_json(const Plan& plan) {
  Json json;
  json["tensor"] = plan.tensor;
  json["sequence"] = plan.sequence_parallel;
  json["pipeline"] = plan.pipeline;
  json["virtual_stages"] = plan.virtual_stages;
  json["schedule"] = plan.schedule;
  json["data"] = plan.data;
  json["zero"] = static_cast<int>(plan.zero);
  json["micro_batch"] = plan.micro_batch;
  json["global_batch"] = plan.global_batch;
  json["seq_len"] = plan.seq_len;
  json["precision"] = name(plan.precision);
  json["recompute"] = name(plan.recompute);
  json["overlap"] = plan.overlap_gradients;
  json["bucket"] = fmt::format("{} B", plan.bucket.count());
  if (plan.compression != Compression::none) json["compression"] = name(plan.compression);
  if (plan.compression == Compression::top_k) json["compression_share"] = plan.compression_share;
  if (!plan.stage_layers.empty()) json["stage_layers"] = plan.stage_layers;
  json["embedding_counts"] = plan.embedding_counts;
  if (plan.cuda_graphs) json["cuda_graphs"] = true;
  return json;
}

}  // namespace orrery::models
