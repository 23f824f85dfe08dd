// Lists of operations: counts worked out by hand, what a plan may and may not do with them, where a
// step waits, and the line that a wrong list gets.

#include "models/model/operation_list.hpp"

#include <fmt/format.h>
#include <catch2/catch.hpp>

#include <random>

#include "models/prediction/listed_steps.hpp"
#include "models/pricing/price.hpp"
#include "models/program/check/check.hpp"
#include "tests/models/questions.hpp"

namespace orrery::models {
namespace {

constexpr const char* two_convolutions = R"({
  "format": "orrery-operations", "name": "two", "parameters": {"batch": 4, "gpus": 2, "side": 8},
  "groups": {"data": "gpus"},
  "forward": [
    {"name": "a", "kind": "conv", "images": "batch", "in": 3, "out": 16, "kernel": [3, 3],
     "size": ["side", "side"]},
    {"name": "bn", "kind": "norm", "norm": "batch", "elements": "batch*side**2*16", "width": 16},
    {"name": "rest", "repeat": 2, "operations": [
      {"name": "b", "kind": "conv", "images": "batch", "in": 16, "out": 16, "kernel": [1, 1],
       "size": ["side", "side"]}]},
    {"name": "fc", "kind": "gemm", "m": "batch", "n": 10, "k": "16*side**2", "bias": true}],
  "update": [
    {"name": "gradients", "kind": "collective", "collective": "all_reduce", "group": "data",
     "bytes": "4*all_parameters", "overlaps": "backward"},
    {"name": "sgd", "kind": "memory", "read": "all_parameters*10", "write": "all_parameters*6"}]})";

Model model_of_list(const Json& json) {
  const Document document = Document::from(json, "list.json");
  return read_model(document.root());
}
Model model_of_list(const char* text) {
  return model_of_list(Json::parse(text));
}

Question asked(const Json& json, const std::string& cluster, const Json& plan = Json::object()) {
  Question made;
  made.model = model_of_list(json);
  made.cluster = hardware::named_cluster(cluster);
  made.software = catalogue_software("generic");
  const Document document = Document::from(plan, "plan");
  made.plan = read_plan(document.root(), made.model, made.cluster.gpus(), made.assumptions);
  return made;
}

/// A loop of one kernel, a message to the neighbours, and a rare second kernel.
Json loop_json() {
  return Json::parse(R"json({
    "format": "orrery-operations", "name": "loop",
    "parameters": {"gpus": 8, "px": "grid(gpus, 3, 0)", "py": "grid(gpus, 3, 1)",
                   "pz": "grid(gpus, 3, 2)"},
    "step": [
      {"name": "work", "kind": "kernel", "key": "work", "flops": 1e10, "read": 1e9, "write": 0,
       "after": ["halo"]},
      {"name": "halo", "kind": "transfer", "to": "neighbours", "grid": ["px", "py", "pz"],
       "bytes_each": 1e6, "queue": "network", "after": ["work@-1"]},
      {"name": "rare", "kind": "memory", "read": 2e10, "write": 0, "every": 10}]})json");
}

std::string refused_list(const Json& json) {
  try {
    model_of_list(json);
  } catch (const InputError& error) {
    return error.what();
  }
  return "accepted";
}

Json changed(const char* pointer, const Json& value) {
  Json json = Json::parse(two_convolutions);
  json[Json::json_pointer{pointer}] = value;
  return json;
}

}  // namespace

TEST_CASE("Parameters and FLOPs of a list are sums over its operations") {
  // a 3 * 16 * 9, bn 2 * 16, twice b 16 * 16, fc 10 * 16 * 64 + 10; multiply-adds of one image of
  // 64 positions: 64 * 432 + 2 * 64 * 256 + 10 * 1024
  const Model model = model_of_list(two_convolutions);
  CHECK(model.parameters == 432 + 32 + 2 * 256 + 10'240 + 10);
  CHECK(model.list->matrix_flops() == 2 * (64 * 432 + 2 * 64 * 256 + 10'240));
  CHECK(model.layers.size() == 4);
  CHECK(model.layers.kinds().size() == 3);
  CHECK(unit_word(model) == "samples");
}

TEST_CASE("ResNet-50 has its published parameters and multiply-adds") {
  // torchvision: 25,557,032 and 4,089,184,256 at 224 pixels
  const Model model = catalogue_model("resnet-50");
  CHECK(model.parameters == 25'557'032);
  CHECK(model.list->matrix_flops() == 2 * 4'089'184'256.0);
}

TEST_CASE(
    "Cross-attention, patches and a convolution have the FLOPs that follow from their sizes") {
  const auto named = [](const Model& model, const std::string& layer, const std::string& name) {
    for (std::int64_t i = 0; i < model.list->layers(); ++i) {
      const std::int64_t kind = model.list->kind_of(i);
      if (model.list->kind_name(kind) != layer) continue;
      for (const ListedOperation& each : model.list->operations(kind)) {
        if (each.name == name) return each;
      }
    }
    throw ContractError{"no operation " + name};
  };
  // T5-XXL, 4 sequences of 512: 4 h H d parameters; of a decoder's token 4 h H d + 4 H d 512 FLOPs,
  // of an encoder's 4 h H d.
  const Model t5 = catalogue_model("t5-xxl");
  const auto of_t5 = [&](const char* name) { return named(t5, "decoder", name); };
  const double tokens = 4 * 512;
  CHECK(of_t5("cross.q").parameters + of_t5("cross.kv").parameters +
            of_t5("cross.projection").parameters ==
        67'108'864);
  CHECK(of_t5("cross.q").flops + of_t5("cross.projection").flops + of_t5("cross.core").flops ==
        tokens * (67'108'864 + 8'388'608));
  CHECK(of_t5("cross.kv").flops == tokens * 67'108'864);
  // A patch of 16 x 16 x 3 into 1,024 columns with their bias.
  const ListedOperation patches =
      named(catalogue_model("vit-l-16"), "patches to positions", "patches");
  CHECK(patches.parameters == 787'456);
  CHECK(patches.flops == 32 * 196 * 2.0 * 768 * 1024);
  // 3 x 3, 64 to 64 channels at 56 x 56: 115,605,504 multiply-adds of an image.
  CHECK(named(catalogue_model("resnet-50"), "stage2.first", "b").flops == 400 * 2 * 115'605'504.0);
}

TEST_CASE("Every list of the catalogue is read, and its Program runs on replicas") {
  for (const char* name : {"resnet-50", "bird-eye-view", "ssd300-resnet50", "retinanet-resnext50",
                           "unet-3d", "dlrm-dcnv2", "vit-l-16", "dinov2-giant", "dit-xl-2",
                           "flux-1", "t5-xxl", "whisper-large-v3"}) {
    CAPTURE(name);
    Question question;
    question.model = catalogue_model(name);
    question.cluster = hardware::named_cluster("dgx-h100 x 2");
    question.software = catalogue_software("generic");
    const Document plan = Document::from(Json{{"micro_batch", 2}}, "plan");
    question.plan = read_plan(plan.root(), question.model, 16, question.assumptions);
    CHECK(conflicts(question).empty());
    const Program program = lower(question);
    check(program);
    CHECK(program.mesh.ranks() == 16);
    CHECK(program.inexact_feature.find("operations of a list: '") == 0);
  }
}

TEST_CASE("The Program of a list holds its parameters, and its FLOPs once forward") {
  const Question question = asked(Json::parse(two_convolutions), "dgx-a100-80gb x 1",
                                  {{"data", 8}, {"precision", "bf16"}});
  CHECK(question.plan.batch.micro == 4);
  CHECK(question.plan.batch.global == 32);
  CHECK(question.plan.formats.gradient == GradientFormat::fp32);
  const Program program = lower(question);
  check(program);
  std::int64_t parameters = 0;
  double forward = 0, backward = 0;
  for (std::size_t layer = 0; layer < program.kind_of_layer.size(); ++layer) {
    const LayerKind& kind = program.kinds[program.kind_of_layer[layer]];
    parameters += kind.parameters;
    forward += static_cast<double>(program.blocks[kind.forward].flops().count());
    backward += static_cast<double>(program.blocks[kind.backward].flops().count());
  }
  CHECK(parameters == question.model.parameters);
  CHECK(forward == 4 * question.model.list->matrix_flops());
  // The first convolution's input needs no gradient.
  CHECK(backward == 2 * forward - 4 * 2 * 64 * 432.0);
  CHECK(program.classes.front().parameters == question.model.parameters);
}

TEST_CASE("ZeRO-1 leaves a list's gradients and FLOPs, and shards its update") {
  const Json json = Json::parse(two_convolutions);
  const Program whole = lower(asked(json, "dgx-a100-80gb x 1", {{"data", 8}, {"zero", 0}}));
  const Program sharded = lower(asked(json, "dgx-a100-80gb x 1", {{"data", 8}, {"zero", 1}}));
  check(sharded);
  const std::int64_t all = whole.classes.front().owned;
  CHECK(sharded.classes.front().owned == (all + 7) / 8);
}

TEST_CASE("What cuts a transformer is refused by name for a list") {
  const auto problem = [](const Json& plan) {
    const Question question = asked(Json::parse(two_convolutions), "dgx-a100-80gb x 1", plan);
    const std::vector<Conflict> found = conflicts(question);
    return found.empty() ? std::string{"accepted"}
                         : found.front().pointer + ": " + found.front().problem;
  };
  CHECK(problem({{"data", 8}}) == "accepted");
  CHECK(problem({{"tensor", 2}}) ==
        "/plan/tensor: tensor 2 is not simulated for a model that is given as a list of "
        "operations; data, micro_batch, precision and zero 0 or 1 are");
  CHECK(problem({{"zero", 3}}) ==
        "/plan/zero: zero 3 is not simulated for a model that is given as a list of operations; 0 "
        "and 1 are");
  CHECK(problem({{"recompute", "full"}}).find("/plan/recompute: recompute full is not") == 0);
}

TEST_CASE("A list is refused where it is wrong, in one line") {
  CHECK(refused_list(changed("/forward/0/kind", "convolve"))
            .find("list.json:/forward/0/kind: expected one of \"gemm\", \"conv\"") == 0);
  CHECK(refused_list(changed("/forward/0/out", -16)) ==
        "list.json:/forward/0/out: expected a whole number from 1 to 1099511627776, found -16");
  CHECK(refused_list(changed("/forward/0/size", {1 << 30, 1 << 30})) ==
        "list.json:/forward/0/size: multiplies sizes to more than 2^53");
  CHECK(refused_list(changed("/forward/3/n", std::int64_t{1} << 40)) == "accepted");
  CHECK(refused_list(changed("/forward/3/k", std::int64_t{1} << 40)) == "accepted");
  Json both = changed("/forward/3/k", std::int64_t{1} << 40);
  both["forward"][3]["n"] = std::int64_t{1} << 40;
  CHECK(refused_list(both) == "list.json:/forward/3: multiplies sizes to more than 2^53");
  CHECK(refused_list(changed("/forward/0/images", "bach")) ==
        "list.json:/forward/0/images: expression 'bach' has an unknown name 'bach'; known: batch "
        "gpus side");
  CHECK(refused_list(changed("/parameters/side", "side+1")) ==
        "list.json:/parameters/side: 'side' depends on itself");
  CHECK(refused_list(changed("/update/0/bytes", "3*all_parameters")) ==
        "list.json:/update/0/bytes: expected 2 or 4 bytes for each of 11226 parameters, found 3");
  Json chained = Json::parse(two_convolutions);
  chained["forward"].insert(chained["forward"].begin() + 1,
                            Json::parse(R"({"name": "c", "kind": "conv", "images": "batch",
      "in": 32, "out": 8, "kernel": [1, 1], "size": [8, 8], "input": "a"})"));
  CHECK(refused_list(chained) ==
        "list.json:/forward/1/in: 32 channels do not follow the 16 of 'a'");
  Json totals = Json::parse(two_convolutions);
  totals["checks"] = {{"parameters", 11'227}};
  CHECK(refused_list(totals) ==
        "list.json:/checks/parameters: the operations add up to 11226, not 11227");
  Json cycle = loop_json();
  cycle["step"][1]["after"] = {"work"};
  CHECK(refused_list(cycle) ==
        "list.json:/step/0/after: 'work' waits for itself, by `after` or by the order of its "
        "queue; name a queue of its own, or '@-1' for the step before");
  Json grid = loop_json();
  grid["parameters"]["px"] = 3;
  CHECK(refused_list(grid) ==
        "list.json:/step/1/grid: 3 x 2 x 2 is a grid of 12 ranks, there are 8 GPUs; grid(gpus, 3, "
        "0), grid(gpus, 3, 1), ... are whole factors of any number");
}

TEST_CASE("Any list that is cut or changed at random is read or refused, never worse") {
  std::mt19937 random{7};
  const std::string whole = Json::parse(two_convolutions).dump();
  for (int i = 0; i < 400; ++i) {
    std::string text = whole;
    const std::size_t at = random() % text.size();
    text[at] = "0123456789-*/(){}[]\":,abz"[random() % 24];
    try {
      const Document document = Document::parse(text, "list.json");
      read_model(document.root());
    } catch (const InputError&) {
    }
  }
  SUCCEED();
}

TEST_CASE("A loader that is slower than the GPU sets the step, and is named") {
  Json json = Json::parse(two_convolutions);
  json["forward"].insert(json["forward"].begin(),
                         Json::parse(R"({"name": "decode", "kind": "host", "seconds": 0.5,
      "queue": "loader", "ahead": 2})"));
  const Question slow = asked(json, "dgx-a100-80gb x 1", {{"data", 8}});
  const Prediction found = predict(slow);
  CHECK(found.step == 500_ms);
  CHECK(found.bottleneck() == TimeClass::host);
  const bool named = std::ranges::any_of(found.assumptions, [](const std::string& each) {
    return each.starts_with("/model: queue 'loader' of the loader needs 500 ms");
  });
  CHECK(named);
}

TEST_CASE("Host work in the middle of a step makes the GPU wait for as long") {
  const Json json = Json::parse(two_convolutions);
  Json waits = json;
  waits["forward"].push_back(Json::parse(R"({"name": "match", "kind": "host", "seconds": 0.01})"));
  const Time without = predict(asked(json, "dgx-a100-80gb x 1", {{"data", 8}})).step;
  const Time with = predict(asked(waits, "dgx-a100-80gb x 1", {{"data", 8}})).step;
  CHECK(with >= without + 10_ms - 1_ms);
  CHECK(with <= without + 11_ms);
}

TEST_CASE("A loop's step is the mean of those with and without what is rarely due") {
  const Question question = asked(loop_json(), "dgx-a100-80gb x 1");
  Question never = question, always = question;
  Json one = loop_json();
  one["step"].erase(2);
  never.model = model_of_list(one);
  one = loop_json();
  one["step"][2]["every"] = 1;
  always.model = model_of_list(one);
  const double low = seconds(predict(never).step), high = seconds(predict(always).step);
  CHECK(seconds(predict(question).step) == Approx(0.9 * low + 0.1 * high).epsilon(1e-9));
  CHECK(unit_word(question.model) == "steps");
}

TEST_CASE("A loop needs the memory of its largest step, however rare") {
  // 1e9 parameters that only each tenth step reads are in memory all the same: 4 GB in fp32.
  Json json = loop_json();
  const auto peak = [](const Json& list) {
    const Prediction found = predict(asked(list, "dgx-a100-80gb x 1"));
    return found.memory.at(found.fullest).total.count();
  };
  const std::int64_t without = peak(json);
  json["step"][2]["parameters"] = 1'000'000'000;
  const std::int64_t rare = peak(json);
  json["step"][2]["every"] = 1;
  CHECK(rare == peak(json));
  CHECK(rare - without == 4'000'000'000);
}

TEST_CASE("What a list keeps between steps is held in memory") {
  // batch x side^2 x 16 x 2 = 4 x 64 x 16 x 2 = 8,192 bytes, and 1.5 rounded up to 2.
  const auto held = [](const Json& list) {
    Bytes sum{};
    const Question question = asked(list, "dgx-a100-80gb x 1", {{"data", 8}, {"micro_batch", 4}});
    for (const auto& each : predict(question).program->classes.front().persistent) {
      sum += each.bytes;
    }
    return sum;
  };
  const Json with = changed("/state", {{"frame", "batch*side**2*16*2"}, {"half", 1.5}});
  CHECK(held(with) == held(Json::parse(two_convolutions)) + Bytes{8'194});
  CHECK(refused_list(changed("/state", {{"frame", "-batch"}})) ==
        "list.json:/state/frame: expected bytes from 0 to 1e18, found \"-batch\"");
  CHECK(
      refused_list(changed("/state", {{"frame", "size"}})).starts_with("list.json:/state/frame: "));
}

TEST_CASE("grid gives whole factors that are as equal as can be") {
  const auto factor = [](int n, int d, int i) {
    const Json json = fmt::format("grid({}, {}, {})", n, d, i);
    const Document document = Document::from(json, "x");
    return number_of(document.root(), NamedValues{std::nullopt, {}});
  };
  for (const auto& [n, a, b, c] :
       {std::tuple{4, 2, 2, 1}, {16, 4, 2, 2}, {64, 4, 4, 4}, {12, 3, 2, 2}, {7, 7, 1, 1}}) {
    CHECK(factor(n, 3, 0) == a);
    CHECK(factor(n, 3, 1) == b);
    CHECK(factor(n, 3, 2) == c);
  }
}

}  // namespace orrery::models
