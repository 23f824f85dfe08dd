// Readers of models whose decoder attends to an encoder's output: T5 and its relatives, Whisper.
// Encoder and decoder have sequences of their own lengths, which the layers of a decoder alone do
// not have, so these models become a list of operations: simulated with data parallelism and
// ZeRO-1, refused by name with any other (plan/conflicts_of_list.cpp). The lengths of a sample are
// `source` and `target` under the config's `parameters`, a key of ours. Leaves out a kernel for
// T5's relative positions, which are added to scores, and dropout.
//
// A decoder's layer of width h, heads of a columns together:
//   attention to itself 4 h a;  to the encoder's output 4 h a, of which keys and values (2 h a) are
//   of the encoder's tokens;  MLP 2 h f, or 3 h f with a gate
// Source  Raffel et al. 2019, arXiv 1910.10683; Radford et al. 2022, arXiv 2212.04356; T5-, UMT5-
//         and WhisperForConditionalGeneration of the transformers library

#include <fmt/format.h>

#include "models/model/import/encoders/translator_kind.hpp"
#include "models/model/import/families.hpp"

namespace orrery::models {
namespace {

/// What encoder and decoder have in common.
struct SequenceLayers {
  std::int64_t hidden = 0, heads = 0, head_dim = 0;
  const char* norm = "rms";
  bool gated = false;
  bool biases = false;                               // of the MLP, and of attention's
  bool attention_biases = true, key_biases = false;  // ... queries, values and outputs; keys

  /// Biases of queries, keys and values, or of keys and values alone.
  std::int64_t biases_of(bool queries) const {
    const int of = (queries ? 1 : 0) + (key_biases ? 1 : 0) + 1;
    return attention_biases ? of * columns() : 0;
  }
  std::int64_t output_biases() const { return attention_biases ? hidden : 0; }

  std::int64_t columns() const { return heads * head_dim; }
};

std::string times(const std::string& rows, std::int64_t columns) {
  return fmt::format("{}*{}", rows, columns);
}

/// Writes the operations of one side; `rows` are its tokens, as an expression.
class SideWriter {
 public:
  SideWriter(const SequenceLayers& layers, std::string rows)
      : layers_{layers}, rows_{std::move(rows)} {}

  void norm(const std::string& name) {
    all_.push_back({{"name", name},
                    {"kind", "norm"},
                    {"norm", layers_.norm},
                    {"elements", times(rows_, layers_.hidden)},
                    {"width", layers_.hidden}});
  }
  /// `biases`: columns with one.
  void gemm(const std::string& name, std::int64_t n, std::int64_t k, std::int64_t biases,
            const std::string& rows) {
    Json op{{"name", name}, {"kind", "gemm"}, {"m", rows}, {"n", n}, {"k", k}};
    if (layers_.biases) op["parameters"] = n * k + biases;
    all_.push_back(std::move(op));
  }
  void pointwise(const std::string& name, std::int64_t columns, int inputs) {
    all_.push_back({{"name", name},
                    {"kind", "elementwise"},
                    {"elements", times(rows_, columns)},
                    {"inputs", inputs}});
  }
  void core(const std::string& name, const std::string& queries, const std::string& keys,
            bool causal) {
    Json op{{"name", name},       {"kind", "attention"},    {"sequences", "batch"},
            {"queries", queries}, {"heads", layers_.heads}, {"head_dim", layers_.head_dim}};
    if (keys != queries) op["keys"] = keys;
    if (causal) op["mask"] = "causal";
    all_.push_back(std::move(op));
  }
  void attention(const std::string& length, bool causal) {
    const std::int64_t h = layers_.hidden, a = layers_.columns();
    norm("norm1");
    gemm("qkv", 3 * a, h, layers_.biases_of(true), rows_);
    core("core", length, length, causal);
    gemm("projection", h, a, layers_.output_biases(), rows_);
    pointwise("add1", h, 2);
  }
  void cross_attention(const std::string& length, const std::string& keys) {
    const std::int64_t h = layers_.hidden, a = layers_.columns();
    norm("norm_cross");
    gemm("cross.q", a, h, layers_.attention_biases ? a : 0, rows_);
    gemm("cross.kv", 2 * a, h, layers_.biases_of(false), "batch*" + keys);
    core("cross.core", length, keys, false);
    gemm("cross.projection", h, a, layers_.output_biases(), rows_);
    pointwise("add_cross", h, 2);
  }
  void mlp(std::int64_t width) {
    const std::int64_t up = (layers_.gated ? 2 : 1) * width;
    norm("norm2");
    gemm("up", up, layers_.hidden, up, rows_);
    pointwise("activation", width, layers_.gated ? 2 : 1);
    gemm("down", layers_.hidden, width, layers_.hidden, rows_);
    pointwise("add2", layers_.hidden, 2);
  }
  /// Parameters that are added to an activation.
  void added(const std::string& name, const std::string& elements, std::int64_t parameters) {
    all_.push_back({{"name", name},
                    {"kind", "elementwise"},
                    {"elements", elements},
                    {"inputs", 2},
                    {"parameters", parameters}});
  }
  Json repeated(const char* name, std::int64_t layers) {
    return {{"name", name}, {"repeat", layers}, {"operations", std::move(all_)}};
  }

  Json take() { return std::move(all_[0]); }

 private:
  SequenceLayers layers_;
  std::string rows_;
  Json all_ = Json::array();
};

/// Sides, tables and heads of both, in order.
struct SequenceModel {
  SequenceLayers layers;
  std::int64_t encoder = 0, decoder = 0, encoder_width = 0, decoder_width = 0;
  std::int64_t vocab = 0;
  bool tied = true;
  bool final_norms = true;         // after the last layer of either side
  Json in = Json::array();         // from the input to the encoder's first layer
  Json positions = Json::array();  // after the table of the decoder
};

Json layers_of(const SequenceModel& model, bool decodes) {
  const std::string own = decodes ? "target" : "source";
  SideWriter writer{model.layers, "batch*" + own};
  writer.attention(own, decodes);
  if (decodes) writer.cross_attention(own, "source");
  writer.mlp(decodes ? model.decoder_width : model.encoder_width);
  return decodes ? writer.repeated("decoder", model.decoder)
                 : writer.repeated("encoder", model.encoder);
}

Json norm_of(const SequenceModel& model, const char* name, const char* rows) {
  SideWriter writer{model.layers, rows};
  writer.norm(name);
  return writer.take();
}

/// From the decoder's output to the loss, which is computed in fp32.
void add_head(const SequenceModel& model, Json& forward) {
  Json head{{"name", "head"},
            {"kind", "gemm"},
            {"m", "batch*target"},
            {"n", model.vocab},
            {"k", model.layers.hidden}};
  if (model.tied) head["parameters"] = 0;
  forward.push_back(std::move(head));
  forward.push_back({{"name", "loss"},
                     {"kind", "elementwise"},
                     {"elements", times("batch*target", model.vocab)},
                     {"inputs", 2},
                     {"format", "fp32"}});
}

Json embedding(const char* name, std::int64_t rows, std::int64_t width, const char* lookups) {
  return {{"name", name},
          {"kind", "embedding"},
          {"rows", rows},
          {"width", width},
          {"lookups", lookups}};
}

/// The length of a side that the config's `parameters` state, or the usual one.
std::int64_t length_of(Config& config, const char* side, std::int64_t most, std::int64_t usual,
                       Json& assumed) {
  const auto stated = config.find("parameters");
  if (stated) {
    if (const auto own = stated->find(side)) return own->integer(1, most);
  }
  assumed.push_back(
      fmt::format(R"({} {} tokens of a sample; /model/parameters={{"{}": N}} states others)", usual,
                  side, side));
  return usual;
}

Model read_as_list(Config& config, const SequenceModel& model, Json parameters, Json assumed) {
  Json forward = model.in;
  forward.push_back(layers_of(model, false));
  if (model.final_norms) forward.push_back(norm_of(model, "encoder_norm", "batch*source"));
  for (const Json& each : model.positions) forward.push_back(each);
  forward.push_back(layers_of(model, true));
  if (model.final_norms) forward.push_back(norm_of(model, "decoder_norm", "batch*target"));
  add_head(model, forward);
  parameters["batch"] = 1;
  parameters["gpus"] = 1;
  assumed.push_back(
      "encoder and decoder are simulated as a list of operations (models/model/README.md): "
      "replicas "
      "of the whole model, no other cut");
  const auto list = Document::from({{"format", "orrery-operations"},
                                    {"name", config.type()},
                                    {"parameters", std::move(parameters)},
                                    {"groups", {{"data", "gpus"}}},
                                    {"backward", "reversed"},
                                    {"forward", std::move(forward)},
                                    {"assumed", std::move(assumed)}},
                                   config.type_node().file());
  return read_operation_list(list.root());
}

/// Refuses other lengths than a side's.
void only_lengths(Config& config, std::initializer_list<std::string_view> sides) {
  const auto stated = config.find("parameters");
  if (stated) stated->only(sides);
}

}  // namespace

/// Norms without biases, one table for both sides, relative positions in buckets: a number for each
/// bucket and head, in the first layer of each side or (UMT5) in all; older models without a gate.
/// LongT5's encoder attends within a radius, and to sums of blocks.
/// Source  Guo et al. 2021, arXiv 2112.07916
Model read_t5(Config& config) {
  if (const std::string name = first_class(config); name.ends_with("EncoderModel")) {
    config.fail("architectures", "an encoder alone (" + name +
                                     ") is not supported; expected a class with both sides");
  }
  SequenceModel model;
  SequenceLayers& layers = model.layers;
  layers.hidden = config.size("d_model", Limits::hidden);
  layers.heads = config.size("num_heads", Limits::heads);
  layers.head_dim = config.size("d_kv", Limits::head_dim);
  const auto feed = config.find("feed_forward_proj");
  layers.gated = feed && feed->as<std::string>().starts_with("gated-");
  config.activation("dense_act_fn", Activation::relu);
  model.encoder_width = model.decoder_width = config.size("d_ff", Limits::ffn_hidden);
  model.encoder = config.size("num_layers", Limits::layers);
  model.decoder = config.positive_or("num_decoder_layers", Limits::layers, model.encoder);
  model.vocab = config.size("vocab_size", Limits::vocab);
  const bool local = config.type() == "longt5";
  // LongT5's class ties in any case; the key says whether outputs are scaled.
  model.tied = config.flag("tie_word_embeddings", true) || local;
  const std::int64_t buckets = config.positive_or("relative_attention_num_buckets", 1 << 16, 32);
  const bool each = config.type() == "umt5";
  for (const char* key :
       {"classifier_dropout", "decoder_start_token_id", "initializer_factor", "is_decoder",
        "is_gated_act", "relative_attention_max_distance", "scale_decoder_outputs"}) {
    config.find(key);
  }
  only_lengths(config, {"source", "target"});
  constexpr std::int64_t trained = 512;  // arXiv 1910.10683, section 3.1.2
  const std::int64_t usual = config.positive_or("n_positions", Limits::positions, trained);
  Json assumed = Json::array(), parameters = Json::object();
  for (const char* side : {"source", "target"}) {
    parameters[side] = length_of(config, side, Limits::positions, usual, assumed);
  }
  assumed.push_back("relative positions are added to scores without a kernel of their own");
  model.in.push_back(embedding("source_table", model.vocab, layers.hidden, "batch*source"));
  SideWriter bias{layers, "batch"};
  std::int64_t places = (each ? model.encoder + model.decoder : 2) * buckets * layers.heads;
  const auto kind = local ? config.find("encoder_attention_type") : std::nullopt;
  if (kind && kind->one_of({"local", "transient-global"}) == 1) {
    places +=
        buckets * layers.heads + model.encoder * layers.hidden;  // of global tokens, and norms
  }
  if (local) {
    config.find("local_radius");
    config.find("global_block_size");
  }
  bias.added("bias", "batch", places);
  model.positions.push_back(bias.take());
  model.positions.push_back({{"name", "target_table"},
                             {"kind", "elementwise"},
                             {"elements", times("batch*target", layers.hidden)},
                             {"note", "the same table"}});
  Model read = read_as_list(config, model, std::move(parameters), std::move(assumed));
  if (local) read.not_simulated = "local attention of an encoder is counted, not yet simulated";
  return read;
}

/// A table for both sides, or one for each; positions of either side, a norm after the embedding or
/// after the last layer, biases.
Model read_translation(Config& config, const TranslatorKind& kind) {
  SequenceModel model;
  SequenceLayers& layers = model.layers;
  layers = {.norm = "layer",
            .biases = true,
            .attention_biases = kind.attention_biases,
            .key_biases = kind.key_biases};
  const std::int64_t h = layers.hidden = config.size("d_model", Limits::hidden);
  layers.heads = config.size("encoder_attention_heads", Limits::heads);
  if (config.size("decoder_attention_heads", Limits::heads) != layers.heads) {
    config.fail("decoder_attention_heads", "differs from encoder_attention_heads");
  }
  if (h % layers.heads != 0) {
    config.fail("d_model",
                fmt::format("{} is not a multiple of the {} attention heads", h, layers.heads));
  }
  layers.head_dim = h / layers.heads;
  model.encoder = config.size("encoder_layers", Limits::layers);
  model.decoder = config.size("decoder_layers", Limits::layers);
  model.encoder_width = config.size("encoder_ffn_dim", Limits::ffn_hidden);
  model.decoder_width = config.size("decoder_ffn_dim", Limits::ffn_hidden);
  const std::int64_t words = config.size("vocab_size", Limits::vocab);
  model.vocab = config.positive_or("decoder_vocab_size", Limits::vocab, words);
  const bool shared = config.flag("share_encoder_decoder_embeddings", true);
  if (shared) model.vocab = words;
  if (!config.flag("tie_word_embeddings", true)) {
    config.fail("tie_word_embeddings", "is not supported for this type; expected true");
  }
  config.activation("activation_function", Activation::gelu_erf);
  model.final_norms = kind.final_norm;
  for (const char* key : {"add_bias_logits",
                          "add_final_layer_norm",
                          "attention_type",
                          "block_size",
                          "classifier_dropout",
                          "decoder_layerdrop",
                          "decoder_start_token_id",
                          "encoder_layerdrop",
                          "encoder_no_repeat_ngram_size",
                          "extra_pos_embeddings",
                          "force_bos_token_to_be_generated",
                          "forced_bos_token_id",
                          "forced_eos_token_id",
                          "is_decoder",
                          "max_length",
                          "normalize_before",
                          "normalize_embedding",
                          "num_hidden_layers",
                          "num_random_blocks",
                          "scale_embedding",
                          "static_position_embeddings",
                          "use_bias"}) {
    config.find(key);
  }
  only_lengths(config, {"source", "target"});
  const std::int64_t longest = config.size("max_position_embeddings", Limits::positions);
  Json assumed = Json::array(), parameters = Json::object();
  for (const char* side : {"source", "target"}) {
    parameters[side] = length_of(config, side, longest, longest, assumed);
  }
  const std::int64_t rows = kind.positions ? (longest + kind.extra) * h : 0;
  const auto embed = [&](Json& to, const char* side, Json table) {
    const std::string tokens = fmt::format("batch*{}", side);
    SideWriter places{layers, tokens}, norm{layers, tokens};
    to.push_back(std::move(table));
    places.added(fmt::format("{}_positions", side), times(tokens, h), rows);
    to.push_back(places.take());
    if (!kind.embedding_norm) return;
    norm.norm(fmt::format("{}_embedding_norm", side));
    to.push_back(norm.take());
  };
  embed(model.in, "source", embedding("source_table", words, h, "batch*source"));
  embed(model.positions, "target",
        shared ? Json{{"name", "target_table"},
                      {"kind", "elementwise"},
                      {"elements", times("batch*target", h)},
                      {"note", "the same table"}}
               : embedding("target_table", model.vocab, h, "batch*target"));
  Model read = read_as_list(config, model, std::move(parameters), std::move(assumed));
  if (config.type() == "bigbird_pegasus") {
    read.not_simulated = "block-sparse attention is counted, not yet simulated";
  }
  return read;
}

/// Two convolutions of which the second halves the sound's steps, fixed positions of the encoder
/// and learned ones of the decoder, layer norms, biases of all but keys.
Model read_whisper(Config& config) {
  const std::string named = first_class(config);
  if (named.ends_with("ForCausalLM")) return read_speech_decoder(config);
  if (named.ends_with("Classification")) {
    config.fail("architectures", "the head of class '" + named +
                                     "' is not supported; expected WhisperForConditionalGeneration "
                                     "or WhisperForCausalLM");
  }
  SequenceModel model;
  SequenceLayers& layers = model.layers;
  layers = {.norm = "layer", .biases = true};
  layers.hidden = config.size("d_model", Limits::hidden);
  layers.heads = config.size("encoder_attention_heads", Limits::heads);
  if (config.size("decoder_attention_heads", Limits::heads) != layers.heads) {
    config.fail("decoder_attention_heads", "differs from encoder_attention_heads");
  }
  if (layers.hidden % layers.heads != 0) {
    config.fail("d_model", fmt::format("{} is not a multiple of the {} attention heads",
                                       layers.hidden, layers.heads));
  }
  layers.head_dim = layers.hidden / layers.heads;
  model.encoder = config.size("encoder_layers", Limits::layers);
  model.decoder = config.size("decoder_layers", Limits::layers);
  model.encoder_width = config.size("encoder_ffn_dim", Limits::ffn_hidden);
  model.decoder_width = config.size("decoder_ffn_dim", Limits::ffn_hidden);
  model.vocab = config.size("vocab_size", Limits::vocab);
  model.tied = config.flag("tie_word_embeddings", true);
  config.activation("activation_function", Activation::gelu_erf);
  const std::int64_t bands = config.size("num_mel_bins", Limits::hidden);
  const std::int64_t source = config.size("max_source_positions", Limits::positions);
  const std::int64_t target = config.size("max_target_positions", Limits::positions);
  for (const char* key :
       {"apply_spec_augment", "begin_suppress_tokens", "classifier_proj_size", "decoder_layerdrop",
        "decoder_start_token_id", "encoder_layerdrop", "mask_feature_length",
        "mask_feature_min_masks", "mask_feature_prob", "mask_time_length", "mask_time_min_masks",
        "mask_time_prob", "median_filter_width", "num_hidden_layers", "scale_embedding",
        "suppress_tokens", "use_weighted_layer_sum"}) {
    config.find(key);
  }
  only_lengths(config, {"target"});
  Json assumed = Json::array();
  const Json parameters{{"source", source},
                        {"target", length_of(config, "target", target, target, assumed)}};
  assumed.push_back("spectrograms are computed before the step");
  const std::int64_t h = layers.hidden;
  const auto convolution = [&](const char* name, std::int64_t in, const char* size) {
    return Json{{"name", name},
                {"kind", "conv"},
                {"images", "batch"},
                {"in", in},
                {"out", h},
                {"kernel", Json::array({3})},
                {"size", Json::array({size})},
                {"bias", true}};
  };
  Json second = convolution("conv2", h, "source");
  second["stride"] = 2;
  second["input"] = "conv1";
  SideWriter sound{layers, "batch*2*source"}, steps{layers, "batch*source"};
  sound.pointwise("gelu1", h, 1);
  steps.pointwise("gelu2", h, 1);
  model.in =
      Json::array({convolution("conv1", bands, "2*source"), sound.take(), second, steps.take()});
  SideWriter fixed{layers, "batch*source"}, learned{layers, "batch*target"};
  fixed.added("positions", times("batch*source", h), source * h);
  learned.added("target_positions", times("batch*target", h), target * h);
  model.in.push_back(fixed.take());
  model.positions =
      Json::array({embedding("table", model.vocab, h, "batch*target"), learned.take()});
  return read_as_list(config, model, parameters, std::move(assumed));
}

}  // namespace orrery::models
