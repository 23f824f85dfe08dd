#include "tests/models/evaluation/random_model.hpp"

#include <initializer_list>
#include <memory>
#include <random>
#include <utility>

namespace orrery::models {

namespace {

// A new part is drawn below, too. Not drawn: parts that are only counted, and lists of operations,
// which are whole models.
static_assert(std::variant_size_v<decltype(Layer::mixer)> == 6);
static_assert(std::variant_size_v<decltype(Layer::channel)> == 4);

class Drawn {
 public:
  explicit Drawn(std::uint64_t seed) : random_{seed} {}

  Model make() {
    ModelDraft model;
    model.name = "random";
    model.family = Family::llama;
    model.hidden = 64;
    model.embedding.vocab = 256;
    model.embedding.positions = Positions::rotary;
    model.embedding.tied = coin();
    model.norms.kind = coin() ? Norm::rms_norm : Norm::layer_norm;
    for (int i = 0; i < 4; ++i) model.layers.push_back(layer());
    if (one_of({0, 1, 2}) == 0) {
      model.front = images();
    } else if (one_of({0, 1, 2}) == 0) {
      return both_sides(std::move(model));
    }
    if (model.layers.back().parts() == 2 && coin()) model.prediction_layers = one_of({1, 2});
    return built(std::move(model));
  }

 private:
  std::int64_t one_of(std::initializer_list<std::int64_t> values) {
    return values.begin()[random_() % values.size()];
  }
  bool coin() { return one_of({0, 1}) == 1; }

  AttentionPart attention() {
    AttentionPart part{.heads = 8, .kv_heads = one_of({2, 4, 8}), .head_dim = 8};
    part.qkv_bias = coin();
    part.output_bias = coin();
    part.qk_norm = coin();
    part.sinks = coin();
    part.gated = coin();
    if (coin()) (coin() ? part.window : part.chunk) = 16;
    if (coin()) return part;
    part = {.heads = 8, .kv_heads = 8, .head_dim = 12, .value_dim = 8};
    part.qkv_bias = part.output_bias = false;
    part.latents = LatentAttention{.query_rank = one_of({0, 24}), .kv_rank = 16, .rotary_dim = 4};
    if (coin()) part.indexer = Indexer{.heads = 4, .dim = 8, .top = one_of({16, 128})};
    return part;
  }

  MlpPart mlp() {
    MlpPart part{.width = one_of({96, 128})};
    part.gated = coin();
    part.bias = coin();
    part.activation = coin() ? Activation::silu : Activation::gelu;
    part.clamped = part.gated && coin();
    return part;
  }

  ExpertsPart experts() {
    ExpertsPart part{.count = 8, .per_token = 2};
    part.mlp = mlp();
    part.shared_width = one_of({0, 64});
    part.shared_gate = part.shared_width > 0 && coin();
    part.narrow = one_of({0, 32});
    part.router_bias = coin();
    return part;
  }

  Layer layer() {
    Layer drawn;
    switch (one_of({0, 0, 1, 2, 3})) {
      case 0:
        drawn.mixer = attention();
        break;
      case 1:
        drawn.mixer = Mamba2Part{
            .heads = 8, .head_dim = 16, .groups = 4, .state = 16, .taps = 4, .chunk = 32};
        break;
      case 2:
        drawn.mixer =
            DeltaPart{.key_heads = 4, .key_dim = 16, .value_heads = 8, .value_dim = 16, .taps = 4};
        break;
      default:
        break;
    }
    const bool alone = std::holds_alternative<NoPart>(drawn.mixer);
    switch (alone ? one_of({0, 1}) : one_of({0, 1, 2})) {
      case 0:
        drawn.channel = mlp();
        break;
      case 1:
        drawn.channel = experts();
        break;
      default:
        break;
    }
    return drawn;
  }

  /// Two layers that encode, and two that attend to them, each with parts as they were drawn.
  Model both_sides(ModelDraft model) {
    LayerList layers;
    model.encoder = EncoderPart{.layers = 2, .seq_len = one_of({48, 128})};
    if (coin()) model.encoder->vocab = 128;
    if (coin()) {
      model.encoder->frame_columns = 16;
      model.encoder->position_rows = model.encoder->seq_len;
      model.encoder->vocab = 0;
    }
    for (std::int64_t i = 0; i < model.layers.size(); ++i) {
      Layer drawn = model.layers[i];
      if (i < 2) {
        AttentionPart part{.heads = 8, .kv_heads = one_of({2, 8}), .head_dim = 8};
        part.encodes = true;
        drawn = {part, mlp()};
      } else {
        if (std::holds_alternative<NoPart>(drawn.channel)) drawn.channel = mlp();
        drawn.cross = CrossAttentionPart{.heads = 8, .kv_heads = one_of({2, 8}), .head_dim = 8};
        drawn.cross->qkv_bias = coin();
        drawn.cross->output_bias = coin();
      }
      layers.push_back(drawn);
    }
    model.layers = std::move(layers);
    return built(std::move(model));
  }

  FrontEncoder images() {
    ModelDraft encoder;
    encoder.causal = false;
    encoder.depth = 2;
    encoder.hidden = 32;
    encoder.attention.heads = encoder.attention.kv_heads = 4;
    encoder.attention.head_dim = 8;
    encoder.mlp.width = 64;
    encoder.embedding.max_positions = 16;
    FrontEncoder front;
    front.encoder = std::make_shared<const Model>(built(std::move(encoder)));
    front.images = one_of({1, 2});
    front.patches = 16;
    front.patch_columns = 12;
    front.merged = one_of({1, 4});
    front.projector = 64;
    return front;
  }

  std::mt19937_64 random_;
};

}  // namespace

Model random_model(std::uint64_t seed) {
  return Drawn{seed}.make();
}

}  // namespace orrery::models
