// Readers of encoders of text: BERT and its relatives. Which head they have is the word that their
// class ends on: a vocabulary, labels, a choice, or none. Weights that no part states (poolers,
// embeddings narrower than the layers) are counted and have no kernels of their own.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "models/model/import/families.hpp"

namespace orrery::models {
namespace {

/// What a class has on top of its encoder.
struct EncoderHead {
  std::string_view ending;  // of its name
  bool vocabulary = false;  // fills in tokens, or predicts the next
  bool pooled = false;      // one matrix over the first token, hidden by hidden, with a bias
  bool bare = false;        // no head; pooled if the type's classes are
  std::int64_t outputs = 0;
  bool labels = false;  // as many outputs as there are labels
};
constexpr std::array<EncoderHead, 11> encoder_heads{
    {{.ending = "ForMaskedLM", .vocabulary = true},
     {.ending = "ForCausalLM", .vocabulary = true},
     {.ending = "LMHeadModel", .vocabulary = true},
     {.ending = "Decoder", .vocabulary = true},
     {.ending = "ForPreTraining", .vocabulary = true, .pooled = true, .outputs = 2},
     {.ending = "ForNextSentencePrediction", .pooled = true, .outputs = 2},
     {.ending = "ForSequenceClassification", .pooled = true, .labels = true},
     {.ending = "ForMultipleChoice", .pooled = true, .outputs = 1},
     {.ending = "ForTokenClassification", .labels = true},
     {.ending = "ForQuestionAnswering", .labels = true},
     {.ending = "Model", .bare = true}}};
constexpr EncoderHead headless{.ending = "Encoder", .bare = true};

/// How a type differs from BERT.
struct EncoderKind {
  std::string_view type;
  bool before = false;     // norms before each part, and a last one
  bool embedding = true;   // a norm after the embedding
  bool types = true;       // segment embeddings
  bool transform = true;   // a matrix and a norm before the vocabulary
  bool pools = true;       // the class without a head has a pooler
  bool pretrains = false;  // its class is taken for the one with two heads if none is named
  Positions positions = Positions::learned;
};
constexpr std::array<EncoderKind, 22> encoder_kinds{{
    {.type = "albert"},
    {.type = "bert", .pretrains = true},
    {.type = "bert-generation", .types = false, .transform = false, .pools = false},
    {.type = "camembert"},
    {.type = "data2vec-text"},
    {.type = "deberta", .types = false, .pools = false},
    {.type = "deberta-v2", .types = false, .pools = false},
    {.type = "distilbert", .types = false, .pools = false},
    {.type = "electra", .pools = false},
    {.type = "ernie"},
    {.type = "gte", .pools = false, .positions = Positions::rotary},
    {.type = "ibert"},
    {.type = "jina_embeddings_v3", .positions = Positions::rotary},
    {.type = "megatron-bert", .before = true, .embedding = false},
    {.type = "mpnet", .types = false},
    {.type = "nomic_bert", .pools = false, .positions = Positions::rotary},
    {.type = "rembert"},
    {.type = "roberta"},
    {.type = "roberta-prelayernorm", .before = true},
    {.type = "xlm-roberta"},
    {.type = "xlm-roberta-xl", .before = true, .embedding = false},
    {.type = "roformer", .pools = false, .positions = Positions::rotary},
}};
constexpr EncoderKind cross_lingual{.type = "xmod"};

const EncoderKind& kind_of(std::string_view type) {
  const auto found = std::ranges::find(encoder_kinds, type, &EncoderKind::type);
  return found == encoder_kinds.end() ? cross_lingual : *found;
}

/// The head of the class that the file names first. Without a name the one that is trained first.
/// Errors: a class whose head is not known.
EncoderHead read_head(Config& config, ModelDraft& model, const EncoderKind& kind) {
  const auto named = config.find("architectures");
  if (!named || named->elements().empty()) {
    const std::string_view ending = kind.pretrains ? "ForPreTraining" : "ForMaskedLM";
    model.assumptions.push_back(fmt::format("/architectures: a class ...{} assumed", ending));
    return *std::ranges::find(encoder_heads, ending, &EncoderHead::ending);
  }
  const Node first = named->elements()[0];
  const auto name = first.as<std::string>();
  if (name.ends_with(headless.ending)) return headless;
  const auto ends = [&](const EncoderHead& each) { return name.ends_with(each.ending); };
  const auto found = std::ranges::find_if(encoder_heads, ends);
  if (found != encoder_heads.end()) return *found;
  std::string known;
  for (const EncoderHead& each : encoder_heads) {
    known += (known.empty() ? "" : ", ") + std::string{each.ending};
  }
  first.fail(fmt::format(
      "the head of class '{}' is not known; expected a name that ends on one of {}", name, known));
}

std::int64_t read_labels(Config& config) {
  const auto listed = config.find("id2label");
  const std::int64_t usual = listed && listed->is_object() && !listed->members().empty()
                                 ? std::ssize(listed->members())
                                 : 2;
  return config.positive_or("num_labels", Limits::vocab, usual);
}

/// Puts a head without a vocabulary on the model. A bare encoder is priced under one output, which
/// is not counted.
void put_task_head(ModelDraft& model, const EncoderHead& head, std::int64_t outputs, bool pools) {
  model.head.transform = model.head.bias = false;
  model.embedding.tied = true;
  model.head.task_outputs = std::max<std::int64_t>(1, outputs);
  if (head.bare) {
    model.further.vector(-(model.hidden + 1));
    also_inexact(model, "a bare encoder, whose loss is priced as one of a single output");
  }
  if (head.pooled || (head.bare && pools)) {
    model.further.vector(model.hidden * model.hidden + model.hidden);
    also_inexact(model, "a pooler");
  }
}

/// An embedding of width e below the layers' h, with its positions, types and norm, a matrix with a
/// bias to the layers, and another from them before the vocabulary:
///   e (V + P + T) + 2 e + e h + h   and   h e + e + 2 e
void narrow_embedding(ModelDraft& model, std::int64_t e, bool vocabulary) {
  const std::int64_t h = model.hidden;
  if (e == h) return;
  model.embedding.width = e;
  model.further.vector((position_rows(model) + model.embedding.token_types + 2) * (e - h) + h);
  model.head.transform = false;
  if (vocabulary) model.further.vector(3 * e);
  if (!vocabulary) model.further.matrix(-e * h);
  also_inexact(model, "norms and positions as wide as the embedding");
}

struct TextEncoder {
  ModelDraft model;
  EncoderHead head;
};

/// BERT with what its kind differs by; callers change the rest.
TextEncoder read_encoder_of_text(Config& config) {
  const EncoderKind& kind = kind_of(config.type());
  TextEncoder encoder;
  ModelDraft& model = encoder.model;
  model.family = Family::bert;
  read_shape(config, model);
  model.mlp.width = config.size("intermediate_size", Limits::ffn_hidden);
  model.mlp.activation = config.activation("hidden_act", Activation::gelu_erf);
  model.embedding.positions = kind.positions;
  const auto places = config.find("position_embedding_type");
  if (places && kind.positions == Positions::learned && places->as<std::string>() != "absolute") {
    places->fail_expected("\"absolute\"");
  }
  if (kind.types) {
    model.embedding.token_types = config.size_or("type_vocab_size", Limits::token_types, 2);
  }
  model.norms.after_residual = !kind.before;
  model.norms.final = kind.before;
  model.norms.embedding = kind.embedding;
  model.embedding.tied = config.flag("tie_word_embeddings", true);
  if (config.flag("add_cross_attention", false)) {
    config.fail("add_cross_attention", "cross-attention of an encoder's type is not supported");
  }
  encoder.head = read_head(config, model, kind);
  model.causal = encoder.head.vocabulary && config.flag("is_decoder", false);
  const bool replaces = config.type() == "electra" && encoder.head.ending == "ForPreTraining";
  if (replaces) {  // tells which tokens were replaced: one output
    encoder.head.vocabulary = false;
    encoder.head.outputs = 1;
  }
  // RoFormer chooses by a summary without a matrix.
  if (config.type() == "roformer" && encoder.head.outputs == 1) encoder.head.pooled = false;
  const EncoderHead& head = encoder.head;
  const std::int64_t labels = read_labels(config);
  if (head.vocabulary) {
    model.head.transform = kind.transform;
    model.head.bias = true;
    model.head.pooler = head.pooled;
  } else {
    put_task_head(model, head, head.labels ? labels : head.outputs, kind.pools);
  }
  if (head.vocabulary && !model.embedding.tied) {
    // The bias of the class and that of its matrix are then two, save where the class has one.
    const bool one = config.type() == "gte" || config.type() == "electra" ||
                     config.type() == "distilbert" || config.type() == "rembert";
    if (!one) model.further.vector(model.embedding.vocab);
  }
  for (const char* key :
       {"classifier_dropout_prob", "classifier_pooling", "cross_attention_hidden_size",
        "directionality", "gradient_checkpointing", "pooler_fc_size", "pooler_num_attention_heads",
        "pooler_num_fc_layers", "pooler_size_per_head", "pooler_type", "summary_last_dropout"}) {
    config.find(key);
  }
  return encoder;
}

}  // namespace

/// Norms after attention, MLP and embedding, no final norm; relatives that differ by where norms
/// stand, and by segments and heads (encoder_kinds).
/// Source  Devlin et al. 2018, arXiv 1810.04805; Liu et al. 2019, arXiv 1907.11692; the classes of
///         these types in the transformers library
Model read_bert(Config& config) {
  return built(read_encoder_of_text(config).model);
}

/// One table more if a sample states its task.
/// Source  Sun et al. 2019, arXiv 1904.09223; ErnieForMaskedLM of the transformers library
Model read_ernie(Config& config) {
  ModelDraft model = read_encoder_of_text(config).model;
  const std::int64_t tasks = config.positive_or("task_type_vocab_size", Limits::token_types, 3);
  if (config.flag("use_task_id", false)) {
    model.further.vector(tasks * model.hidden);
    also_inexact(model, "embeddings of a sample's task");
  }
  return built(model);
}

/// Source  Sanh et al. 2019, arXiv 1910.01108; DistilBertForMaskedLM of the transformers library
Model read_distilbert(Config& config) {
  config.assume({{"hidden_size", config.size("dim", Limits::hidden)},
                 {"num_attention_heads", config.size("n_heads", Limits::heads)},
                 {"num_hidden_layers", config.size("n_layers", Limits::layers)},
                 {"intermediate_size", config.size("hidden_dim", Limits::ffn_hidden)}});
  ModelDraft model = read_encoder_of_text(config).model;
  model.mlp.activation = config.activation("activation", Activation::gelu_erf);
  for (const char* key :
       {"qa_dropout", "seq_classif_dropout", "sinusoidal_pos_embds", "tie_weights_"}) {
    config.find(key);
  }
  return built(model);
}

/// Rotary positions and a gated MLP, no biases but those of norms.
/// Source  Nussbaum et al. 2024, arXiv 2402.01613; NomicBertForMaskedLM of the transformers library
Model read_nomic_bert(Config& config) {
  ModelDraft model = read_encoder_of_text(config).model;
  model.mlp.gated = true;
  model.mlp.bias = model.attention.qkv_bias = model.attention.output_bias = false;
  return built(model);
}

/// Rotary positions and a gated MLP of which the last matrix alone has a bias.
/// Source  Zhang et al. 2024, arXiv 2407.19669; GteForMaskedLM of the transformers library
Model read_gte(Config& config) {
  ModelDraft model = read_encoder_of_text(config).model;
  model.mlp.gated = true;
  model.mlp.bias = false;
  model.further.vector(model.depth * model.hidden);
  also_inexact(model, "a bias of each MLP's last matrix");
  return built(model);
}

/// A number for each bucket of distances and head, added to scores.
/// Source  Song et al. 2020, arXiv 2004.09297; MPNetForMaskedLM of the transformers library
Model read_mpnet(Config& config) {
  ModelDraft model = read_encoder_of_text(config).model;
  const std::int64_t buckets = config.positive_or("relative_attention_num_buckets", 1 << 16, 32);
  model.further.vector(buckets * model.attention.heads);
  also_inexact(model, "relative positions added to scores");
  return built(model);
}

/// The narrower embedding of ELECTRA.
/// Source  Clark et al. 2020, arXiv 2003.10555; ElectraForMaskedLM of the transformers library
Model read_electra(Config& config) {
  auto [model, head] = read_encoder_of_text(config);
  narrow_embedding(model, config.size("embedding_size", Limits::hidden), head.vocabulary);
  return built(model);
}

/// ELECTRA's embedding, rotary positions whose table is counted.
/// Source  Su et al. 2021, arXiv 2104.09864; RoFormerForMaskedLM of the transformers library
Model read_roformer(Config& config) {
  auto [model, head] = read_encoder_of_text(config);
  narrow_embedding(model, config.positive_or("embedding_size", Limits::hidden, model.hidden),
                   head.vocabulary);
  model.further.vector(model.embedding.max_positions * (model.hidden / model.attention.heads));
  config.find("rotary_value");
  return built(model);
}

/// A few layers that are run again and again.
/// Source  Lan et al. 2019, arXiv 1909.11942; AlbertForMaskedLM of the transformers library
Model read_albert(Config& config) {
  auto [model, head] = read_encoder_of_text(config);
  const std::int64_t h = model.hidden, e = config.size("embedding_size", Limits::hidden);
  const std::int64_t groups = config.positive_or("num_hidden_groups", Limits::layers, 1);
  const std::int64_t inner = config.positive_or("inner_group_num", Limits::layers, 1);
  narrow_embedding(model, e, head.vocabulary);
  if (e == h) model.further.matrix(h * h + h);  // to the layers even so
  const Layer layer{model.attention, model.mlp};
  for (std::int64_t i = 0; i < model.depth * inner; ++i) model.layers.push_back(layer);
  const std::int64_t again = model.depth * inner - groups * inner;
  model.further.vector(-again * (tally_of(layer, h).total + 4 * h));
  for (const char* key : {"down_scale_factor", "gap_size", "net_structure_type",
                          "num_memory_blocks", "inner_group_num", "num_hidden_groups"}) {
    config.find(key);
  }
  model.formula = "e(V+P+T) + 2e + eh + h + groups*(4hh + 2hf + biases + 4h) + head";
  model.not_simulated = "layers that share their weights are counted, not yet simulated";
  return built(model);
}

/// An embedding narrower than the layers, a head wider than it.
///   e (V + P + T) + 2 e + e h + h + layers + h o + 3 o + V o + V
/// Source  Chung et al. 2020, arXiv 2010.12821; RemBertForMaskedLM of the transformers library
Model read_rembert(Config& config) {
  auto [model, head] = read_encoder_of_text(config);
  const std::int64_t h = model.hidden, vocab = model.embedding.vocab;
  const std::int64_t e = config.size("input_embedding_size", Limits::hidden);
  const std::int64_t o = config.size("output_embedding_size", Limits::hidden);
  if (model.embedding.tied && head.vocabulary) {
    config.fail("tie_word_embeddings",
                "a tied head is not supported for this type; expected false");
  }
  model.embedding.tied = true;  // the head is counted below
  model.embedding.width = e;
  model.further.vector((position_rows(model) + model.embedding.token_types + 2) * (e - h) + h);
  if (e != h) model.further.matrix(-e * h);
  if (e == h) model.further.matrix(h * h);
  model.head.transform = false;
  if (head.vocabulary) {
    model.further.matrix(h * o);
    model.further.vector(3 * o);
    model.further.add({vocab * o, vocab * o, vocab * (o - e)});
  }
  model.formula = "e(V+P+T) + 2e + eh + h + L(4hh + 2hf + biases + 4h) + ho + 3o + Vo + V";
  model.not_simulated = "a head wider than the embedding is counted, not yet simulated";
  return built(model);
}

/// Adapters of h / r columns in each layer, for each language one.
/// Source  Pfeiffer et al. 2022, arXiv 2205.06266; XmodForMaskedLM of the transformers library
Model read_xmod(Config& config) {
  ModelDraft model = read_encoder_of_text(config).model;
  const std::int64_t h = model.hidden;
  const std::int64_t b = h / config.positive_or("adapter_reduction_factor", Limits::hidden, 2);
  const auto listed = config.find("languages");
  const std::int64_t languages = listed ? std::ssize(listed->elements()) : 1;
  model.further.experts(model.depth * languages, model.depth, 2 * h * b);
  model.further.vector(model.depth * languages * (b + h));
  if (config.flag("adapter_layer_norm", false)) model.further.vector(model.depth * 2 * h);
  if (config.flag("pre_norm", false)) {
    model.norms.after_residual = false;
    model.norms.final = true;
  }
  for (const char* key : {"adapter_reuse_layer_norm", "default_language", "ln_before_adapter"}) {
    config.find(key);
  }
  model.not_simulated = "adapters of languages are counted, not yet simulated";
  return built(model);
}

namespace {

bool names(const std::optional<Node>& kinds, std::string_view kind) {
  if (!kinds) return false;
  if (kinds->is_string()) return kinds->as<std::string>().find(kind) != std::string::npos;
  return std::ranges::any_of(kinds->elements(),
                             [&](const Node& each) { return each.as<std::string>() == kind; });
}

/// Scores of relative positions: a table for all layers, and in each a matrix for the positions of
/// keys and one for those of queries.
void add_disentangled(Config& config, ModelDraft& model, bool second) {
  const std::int64_t h = model.hidden, n = model.depth;
  const auto kinds = config.find("pos_att_type");
  const bool shared = second && config.flag("share_att_key", false);
  const auto whole = config.find("max_relative_positions");
  const std::int64_t most = whole ? whole->as<std::int64_t>() : -1;
  std::int64_t span = most < 1 ? model.embedding.max_positions : most;
  const auto buckets = second ? config.find("position_buckets") : std::nullopt;
  if (buckets && buckets->as<std::int64_t>() > 0) span = buckets->as<std::int64_t>();
  model.further.vector(2 * span * h);
  if (second) {
    if (!shared && names(kinds, "c2p")) model.further.vector(n * (h * h + h));
    if (!shared && names(kinds, "p2c")) model.further.vector(n * (h * h + h));
    const auto norm = config.find("norm_rel_ebd");
    if (norm && norm->as<std::string>().find("layer_norm") != std::string::npos) {
      model.further.vector(2 * h);
    }
  } else {
    if (names(kinds, "c2p")) model.further.vector(n * h * h);
    if (names(kinds, "p2c")) model.further.vector(n * (h * h + h));
  }
  model.not_simulated = "disentangled attention is counted, not yet simulated";
}

}  // namespace

/// Source  He et al. 2020, arXiv 2006.03654; He et al. 2021, arXiv 2111.09543; DebertaForMaskedLM
///         and DebertaV2ForMaskedLM of the transformers library
Model read_deberta(Config& config) {
  auto [model, head] = read_encoder_of_text(config);
  const bool second = config.type() == "deberta-v2";
  const std::int64_t h = model.hidden;
  if (!config.flag("position_biased_input", true)) model.embedding.positions = Positions::none;
  model.embedding.token_types = config.size_or("type_vocab_size", Limits::token_types, 0);
  const std::int64_t e = config.positive_or("embedding_size", Limits::hidden, h);
  if (e != h)
    config.fail("embedding_size", "an embedding of another width is not supported for this type");
  if (config.positive_or("pooler_hidden_size", Limits::hidden, h) != h) {
    config.fail("pooler_hidden_size", "differs from hidden_size; expected no such key");
  }
  if (config.size_or("attention_head_size", Limits::head_dim, 0) > 0) {
    config.fail("attention_head_size", "is not supported for this type; expected no such key");
  }
  if (!second) {
    model.attention.qkv_bias = false;
    model.further.vector(model.depth * 2 * h);  // of queries and values
    if (config.flag("talking_head", false)) {
      model.further.matrix(model.depth * 2 * model.attention.heads * model.attention.heads);
    }
  }
  if (config.flag("relative_attention", false)) add_disentangled(config, model, second);
  const std::int64_t taps = second ? config.size_or("conv_kernel_size", 1 << 10, 0) : 0;
  const std::int64_t groups = config.positive_or("conv_groups", Limits::heads, 1);
  if (taps > 0) {
    model.further.matrix(h * h / groups * taps);
    model.further.vector(3 * h);
  }
  for (const char* key :
       {"conv_act", "legacy", "pooler_dropout", "pooler_hidden_act", "pos_att_type",
        "max_relative_positions", "norm_rel_ebd", "position_buckets", "share_att_key"}) {
    config.find(key);
  }
  return built(model);
}

namespace {

/// Llama's layers that see all tokens, with another head than a vocabulary where the class says so.
TextEncoder read_bidirectional(Config& config) {
  TextEncoder encoder{llama_with_biases(config), {}};
  ModelDraft& model = encoder.model;
  model.family = Family::bert;
  model.causal = false;
  encoder.head = read_head(config, model, kind_of("roformer"));
  const std::int64_t labels = read_labels(config);
  if (!encoder.head.vocabulary) {
    put_task_head(model, encoder.head, encoder.head.labels ? labels : encoder.head.outputs, false);
  }
  return encoder;
}

}  // namespace

/// Source  Boizard et al. 2025, arXiv 2503.05500; EuroBertForMaskedLM of the transformers library
Model read_eurobert(Config& config) {
  auto [model, head] = read_bidirectional(config);
  if (head.vocabulary) model.head.bias = config.flag("mlp_bias", false);
  config.find("clf_pooling");
  return built(model);
}

/// Layer norms with biases, but the last; norms of all queries and keys at once.
/// Source  EvolutionaryScale 2024, ESM Cambrian; EsmcForMaskedLM of the transformers library
Model read_esmc(Config& config) {
  auto [model, head] = read_bidirectional(config);
  model.norms.kind = Norm::layer_norm;
  norm_all_heads(model);
  model.further.vector(-model.hidden);
  model.head.transform = model.head.bias = head.vocabulary;
  return built(model);
}

/// No norms with weights; an embedding of rank r, a table of values for all layers, and of each
/// layer a gate of attention's output and three kinds of scalars. Images become tokens by an MLP.
///   V r + r h + V k + L (h (3 q + 2 k) + 2 h f + n + 2)  +  c (2 + 2 h) + 2 h h + h,  c = 3 p p
/// Source  NeoMMEForMaskedLM of the transformers library
Model read_neomme(Config& config) {
  auto [model, head] = read_bidirectional(config);
  if (!head.vocabulary) {
    config.fail("architectures", "only the class NeoMMEForMaskedLM is supported for this type");
  }
  if (!config.flag("tie_word_embeddings", true)) {
    config.fail("tie_word_embeddings", "is not supported for this type; expected true");
  }
  const std::int64_t h = model.hidden, r = config.size("embedding_rank", Limits::hidden);
  const std::int64_t patch = config.size("patch_size", 1 << 10), c = 3 * patch * patch;
  const std::int64_t k = model.attention.key_columns(), q = model.attention.query_columns();
  model.mlp.gated = false;
  model.embedding.tied = true;
  model.embedding.width = r;
  if (r != h) model.further.matrix(-r * h);
  model.further.vector(c * (2 + 2 * h) + 2 * h * h + h);
  model.further.vector(model.embedding.vocab * k + model.depth * (model.attention.heads + 2));
  model.further.vector(-(2 * model.depth + 1) * h);  // norms have no weights
  model.further.matrix(model.depth * h * q);
  for (const char* key : {"embedding_dim", "layer_types", "per_layer_config", "residual_multiplier",
                          "sliding_window"}) {
    config.find(key);
  }
  model.formula = "Vr + rh + Vk + L(h(3q+2k) + 2hf + n + 2) + c(2+2h) + 2hh + h, c = 3pp";
  model.not_simulated = "tables of values and gates of attention are counted, not yet simulated";
  return built(std::move(model));
}

}  // namespace orrery::models
