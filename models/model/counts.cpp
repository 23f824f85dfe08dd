// Parameters and FLOPs of a model as sums over the matrices of its layers, and models of its parts.

#include "models/model/counts.hpp"

#include <algorithm>
#include <cmath>

#include "models/model/model.hpp"
#include "models/model/operation_list.hpp"
#include "sim/errors.hpp"

namespace orrery::models {
namespace {

bool biased_norm(const Model& model) {
  return model.norms.kind == Norm::layer_norm && model.norms.bias;
}

std::int64_t norm_width(const Model& model) {
  return model.hidden * (biased_norm(model) ? 2 : 1);
}

/// Norms of a layer with so many parts.
std::int64_t norms_of(const Model& model, int parts) {
  return (model.norms.shared ? 1 : parts) + (model.norms.sandwich ? parts : 0);
}

/// One layer with its norms.
Tally tally_with_norms(const Model& model, const Layer& layer) {
  Tally sum = tally_of(layer, model.hidden);
  sum.vector(norms_of(model, layer.parts()) * norm_width(model));
  return sum;
}

Tally tally_of_layers(const Model& model) {
  Tally sum;
  for (const Layer& kind : model.layers.kinds()) {
    sum.add(tally_with_norms(model, kind), model.layers.count(kind));
  }
  return sum;
}

/// Tables, the matrices between the embedding width and the layers', and the norm.
Tally tally_of_embedding(const Model& model) {
  Tally sum;
  const std::int64_t rows = position_rows(model) + model.embedding.token_types;
  sum.vector(model.embedding.vocab * embedding_width(model) + rows * model.hidden);
  if (projects_embeddings(model)) sum.matrix(2 * model.embedding.width * model.hidden);
  if (model.norms.embedding) sum.vector(norm_width(model));
  return sum;
}

/// What an encoder has besides its layers: positions and a table of its own, norms, convolutions.
Tally tally_of_encoder_ends(const Model& model) {
  Tally sum;
  if (!model.encoder || model.encoder->given()) return sum;
  const EncoderPart& of = *model.encoder;
  const std::int64_t h = model.hidden;
  sum.vector(of.position_rows * h + of.vocab * embedding_width(model));
  if (of.frame_columns > 0) sum.vector(3 * of.frame_columns * h + h + 3 * h * h + h);
  if (model.norms.embedding) sum.vector(norm_width(model));
  if (model.norms.final) sum.vector(norm_width(model));
  return sum;
}

/// Final norm and head. A tied head multiplies, too, but its weights are the embedding's.
Tally tally_of_head(const Model& model) {
  const std::int64_t h = model.hidden, outputs = model.head.task_outputs;
  Tally sum;
  if (model.norms.final) sum.vector(norm_width(model));
  if (model.head.transform) {
    sum.matrix(h * h);
    sum.vector(h + norm_width(model));
  }
  if (outputs > 0) {
    sum.matrix(h * outputs);
    sum.vector(outputs);
    return sum;
  }
  const std::int64_t table = model.embedding.vocab * embedding_width(model);
  if (!model.embedding.tied) sum.vector(table);
  sum.gemm += table;
  if (model.head.bias) sum.vector(model.embedding.vocab);
  if (model.head.pooler) sum.vector(h * h + h + 2 * h + 2);
  return sum;
}

/// Modules that predict further tokens: their layers, three norms and the matrix that joins their
/// two inputs. The head multiplies once more in each.
Tally tally_of_prediction(const Model& model) {
  Tally sum;
  if (model.prediction_layers == 0) return sum;
  for (const Layer& each : prediction_module(model)) sum.add(tally_with_norms(model, each));
  sum.matrix(2 * model.hidden * model.hidden);
  sum.vector((model.norms.final ? 3 : 2) * norm_width(model));
  sum.gemm += model.head.task_outputs > 0 ? model.head.task_outputs * model.hidden
                                          : model.embedding.vocab * embedding_width(model);
  Tally all;
  all.add(sum, model.prediction_layers);
  if (model.prediction_shared) return {sum.total, sum.touched, all.gemm};
  return all;
}

/// ELECTRA's generator: its layers, g h in and out with a bias, and its head, which is its model's
/// table: a GEMM more, no parameter more.
Tally tally_of_generator(const Model& model) {
  Tally sum;
  if (model.generator_hidden == 0) return sum;
  const Model own = generator_model(model);
  sum.add(tally_of_layers(own));
  sum.matrix(2 * own.hidden * model.hidden);
  sum.vector(own.hidden + own.embedding.vocab);
  sum.gemm += model.embedding.vocab * embedding_width(own);
  return sum;
}

/// Patches' matrix with its bias, their positions, the encoder's layers and last norm, and the
/// projector. Not one by one of each token.
///   c p p e + e + P e + layers + norm  +  m e j + j + j h + h
Tally tally_of_front(const Model& model) {
  Tally sum;
  if (!model.front) return sum;
  const FrontEncoder& front = *model.front;
  const Model& encoder = *front.encoder;
  const std::int64_t e = encoder.hidden, j = front.projector;
  sum.vector(front.patch_columns * e + e + position_rows(encoder) * e);
  sum.vector(tally_of_layers(encoder).total + norm_width(encoder));
  sum.vector(front.merged * e * j + j + j * model.hidden + model.hidden);
  return sum;
}

Tally tally_of_all(const Model& model) {
  if (model.list) {
    const std::int64_t all = model.list->parameters();
    return {all, all, std::llround(model.list->matrix_flops() / 2)};
  }
  Tally sum = model.further;
  for (const Tally& part :
       {tally_of_embedding(model), tally_of_encoder_ends(model), tally_of_layers(model),
        tally_of_head(model), tally_of_prediction(model), tally_of_generator(model),
        tally_of_front(model)}) {
    sum.add(part);
  }
  return sum;
}

}  // namespace

bool projects_embeddings(const Model& model) {
  return model.embedding.width > 0 && model.embedding.width != model.hidden;
}

std::int64_t embedding_width(const Model& model) {
  return projects_embeddings(model) ? model.embedding.width : model.hidden;
}

std::int64_t position_rows(const Model& model) {
  if (model.embedding.positions != Positions::learned) return 0;
  return model.embedding.max_positions + model.embedding.extra_position_rows;
}

Model generator_model(const Model& model) {
  Model generator = model;
  const std::int64_t g = model.generator_hidden, h = model.hidden;
  generator.hidden = g;
  generator.layers.change([&](Layer& layer) {
    if (auto* const mixer = std::get_if<AttentionPart>(&layer.mixer)) {
      mixer->heads = mixer->kv_heads = std::max<std::int64_t>(1, mixer->heads * g / h);
      mixer->head_dim = g / mixer->heads;
    }
    if (auto* const mlp = std::get_if<MlpPart>(&layer.channel)) mlp->width = mlp->width * g / h;
  });
  generator.embedding.width = h;
  generator.head.transform = false;
  generator.head.bias = generator.embedding.tied = true;
  generator.head.pooler = false;
  generator.head.task_outputs = generator.generator_hidden = 0;
  return generator;
}

std::int64_t count_parameters(const Model& model) {
  return tally_of_all(model).total;
}

std::int64_t count_prediction_parameters(const Model& model) {
  return tally_of_prediction(model).total;
}

std::int64_t count_active_parameters(const Model& model) {
  return tally_of_all(model).touched;
}

std::int64_t count_gemm_parameters(const Model& model) {
  return tally_of_all(model).gemm;
}

namespace {

std::string formula_of_layer(const Model& model) {
  const AttentionPart& attention = usual_attention(model);
  const ExpertsPart& experts = usual_experts(model);
  const MlpPart& mlp = usual_mlp(model);
  std::string layer = attention.latents ? "latent attention + " : "h(q+2k) + qh + ";
  layer += experts.count > 0 ? "router hE + E*" : "";
  layer += mlp.gated ? "3hf" : "2hf";
  if (experts.shared_width > 0) layer += " + shared";
  if (attention.qkv_bias) layer += " + q+2k";
  if (attention.output_bias) layer += " + h";
  if (mlp.bias) layer += mlp.gated ? " + 2f+h" : " + f+h";
  if (attention.qk_norm) layer += " + 2d";
  return layer + " + " + std::to_string(norms_of(model, 2)) + "*" +
         (biased_norm(model) ? "2h" : "h");
}

}  // namespace

std::string parameter_formula(const Model& model) {
  const std::string norm = biased_norm(model) ? "2h" : "h";
  const std::string words = projects_embeddings(model) ? "Ve" : "Vh";
  std::string all = words;
  if (projects_embeddings(model)) all += " + 2eh";
  if (position_rows(model) > 0) all += " + Ph";
  if (model.embedding.token_types > 0) all += " + Th";
  if (model.norms.embedding) all += " + " + norm;
  all += " + L(" + formula_of_layer(model) + ")";
  if (model.encoder && !model.encoder->given()) all += " + encoder";
  if (crosses(model)) all += " + C(cross-attention 2hq+4hk)";
  if (model.norms.final) all += " + " + norm;
  if (model.prediction_layers > 0) all += " + D(layer + 2hh + norms)";
  if (model.generator_hidden > 0) all += " + generator";
  if (model.head.transform) all += " + hh+h+" + norm;
  if (model.front) all += " + image encoder + projector";
  if (model.head.task_outputs > 0) return all + " + ha+a";
  if (!model.embedding.tied) all += " + " + words;
  if (model.head.bias) all += " + V";
  if (model.head.pooler) all += " + hh+h+2h+2";
  return all;
}

double attended_tokens(const AttentionPart& attention, bool causal, std::int64_t seq_len) {
  const std::int64_t part = attention.chunk > 0 ? std::min(attention.chunk, seq_len) : seq_len;
  const auto pairs = [&](std::int64_t length) {
    const auto s = static_cast<double>(length);
    if (!causal) return s * s;
    // An indexer chooses as many keys for each token as a window would hold.
    const std::int64_t chosen = attention.indexer ? attention.indexer->top : 0;
    const std::int64_t reach = std::max(attention.window, chosen);
    const std::int64_t window = reach > 0 ? reach : length;
    const auto w = static_cast<double>(std::min(window, length));
    return w * s - w * w / 2;
  };
  const auto whole = static_cast<double>(seq_len / part);
  return (whole * pairs(part) + pairs(seq_len % part)) / static_cast<double>(seq_len);
}

namespace {

/// Tokens of a source for each of the decoder's.
double source_share(const Model& model, std::int64_t seq_len) {
  return static_cast<double>(source_length(model)) / static_cast<double>(seq_len);
}

/// FLOPs of attention's scores and context for one token of a layer; 0 without attention.
double attention_flops_of(const Model& model, const Layer& layer, std::int64_t seq_len) {
  const AttentionPart* const attention = layer.attention();
  if (attention == nullptr) return 0;
  const auto widths =
      static_cast<double>(attention->heads * (attention->head_dim + attention->value_width()));
  if (attention->encodes) {
    return 2.0 * widths * attended_tokens(*attention, false, source_length(model)) *
           source_share(model, seq_len);
  }
  return 2.0 * widths * attended_tokens(*attention, model.causal, seq_len);
}

/// The same of cross-attention, in all layers.
double cross_flops_per_token(const Model& model) {
  double sum = 0;
  for (const Layer& kind : model.layers.kinds()) {
    if (!kind.cross) continue;
    sum += static_cast<double>(model.layers.count(kind) * kind.cross->query_columns());
  }
  return 4 * sum * static_cast<double>(source_length(model));
}

}  // namespace

double attention_flops_per_token(const Model& model, std::int64_t seq_len) {
  double sum = 0;
  std::vector<const AttentionPart*> counted;
  for (const Layer& kind : model.layers.kinds()) {
    const AttentionPart* const own = kind.attention();
    const auto is_own = [&](const AttentionPart* other) { return other && *other == *own; };
    if (own == nullptr || std::ranges::any_of(counted, is_own)) continue;
    counted.push_back(own);
    const std::int64_t alike =
        model.layers.count_if([&](const Layer& layer) { return is_own(layer.attention()); });
    sum += static_cast<double>(alike) * attention_flops_of(model, kind, seq_len);
  }
  return sum + cross_flops_per_token(model);
}

double passes_per_token(const Model& model, const Layer& layer, const LayerMatrix& matrix,
                        std::int64_t seq_len) {
  const bool of_source = layer.encodes() || matrix.of_source;
  return of_source ? source_share(model, seq_len) : 1;
}

namespace {

std::int64_t scan_flops_of(const Layer& layer) {
  if (const auto* const mixer = std::get_if<Mamba2Part>(&layer.mixer)) return scan_flops(*mixer);
  if (const auto* const mixer = std::get_if<DeltaPart>(&layer.mixer)) return scan_flops(*mixer);
  return 0;
}

/// What the source's tokens add to the FLOPs of the matrices, of which each is counted once for
/// each of the decoder's: in layers, and in the convolutions before them.
double further_source_flops(const Model& model, std::int64_t seq_len) {
  double weights = 0;
  for (const Layer& kind : model.layers.kinds()) {
    double own = 0;
    for (const LayerMatrix& each : matrices_of(kind, model.hidden)) {
      const double further = passes_per_token(model, kind, each, seq_len) - 1;
      own += further * static_cast<double>(each.met * each.in * each.out);
    }
    weights += own * static_cast<double>(model.layers.count(kind));
  }
  return 2 * weights;
}

/// Two frames pass the first convolution for each that passes the second.
double frame_flops_per_token(const Model& model, std::int64_t seq_len) {
  if (!model.encoder || model.encoder->frame_columns == 0) return 0;
  const std::int64_t h = model.hidden,
                     of_step = 2 * 3 * model.encoder->frame_columns * h + 3 * h * h;
  return 2 * static_cast<double>(of_step) * source_share(model, seq_len);
}

double scan_flops_per_token(const Model& model) {
  std::int64_t sum = 0;
  for (const Layer& kind : model.layers.kinds()) {
    sum += scan_flops_of(kind) * model.layers.count(kind);
  }
  return static_cast<double>(sum);
}

}  // namespace

double forward_flops_per_token(const Model& model, std::int64_t seq_len) {
  if (model.list) {
    return model.list->trains() ? model.list->matrix_flops() : model.list->forward_flops();
  }
  double flops = 2.0 * static_cast<double>(count_gemm_parameters(model)) +
                 further_source_flops(model, seq_len) + frame_flops_per_token(model, seq_len) +
                 attention_flops_per_token(model, seq_len) + scan_flops_per_token(model);
  const std::vector<Layer> module =
      model.prediction_layers > 0 ? prediction_module(model) : std::vector<Layer>{};
  for (const Layer& each : module) {
    flops += static_cast<double>(model.prediction_layers) *
             (attention_flops_of(model, each, seq_len) + static_cast<double>(scan_flops_of(each)));
  }
  if (model.generator_hidden == 0) return flops;
  return flops + attention_flops_per_token(generator_model(model), seq_len);
}

FrontFlops front_flops(const FrontEncoder& front, std::int64_t hidden) {
  const Model& encoder = *front.encoder;
  const double of_patch = 2 * static_cast<double>(front.patch_columns * encoder.hidden) +
                          layers_flops_per_token(encoder, front.patches);
  const auto product = [&](std::int64_t in, std::int64_t out) {
    return 2 * static_cast<double>(front.rows()) * static_cast<double>(in * out);
  };
  return {of_patch * static_cast<double>(front.images * front.patches),
          product(front.merged * encoder.hidden, front.projector),
          product(front.projector, hidden)};
}

double layers_flops_per_token(const Model& model, std::int64_t seq_len) {
  if (model.list) return model.list->forward_flops();
  return 2.0 * static_cast<double>(tally_of_layers(model).gemm) +
         further_source_flops(model, seq_len) + attention_flops_per_token(model, seq_len) +
         scan_flops_per_token(model);
}

}  // namespace orrery::models
