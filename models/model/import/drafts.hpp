#pragma once
// Drafts that readers of several families start from, and the pieces that they share.

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <optional>
#include <string_view>
#include <vector>

#include "models/model/import/config.hpp"

namespace orrery::models {

/// LLaMA's attention with routed experts of the width at `width`, counted at the first of `count`
/// that is present.
ModelDraft with_experts(Config& config, std::initializer_list<std::string_view> count,
                        std::string_view width);

/// So many shared experts, as wide as a routed one each.
void share_experts(ModelDraft& model, std::int64_t experts);

/// Sigmoid scores, normalised; experts chosen with a bias.
void sigmoid_routing(Config& config, ModelDraft& model);

/// Layers without experts: those that `mlp_layer_types` calls dense, or else the first few.
void read_dense_layers(Config& config, ModelDraft& model, std::int64_t first);
/// A head is as wide as the hidden columns allow if the file does not say.
void assume_head_dim(Config& config);

/// How many layers have experts.
std::int64_t layers_with_experts(const ModelDraft& model);
/// `first_k_dense_replace`, at most all layers.
std::int64_t first_few(Config& config, const ModelDraft& model);

/// GLM-4.5's layers.
ModelDraft glm4_moe_like(Config& config);
/// DeepSeek-V3's layers: all but the sparse attention's indexer.
ModelDraft deepseek_like(Config& config);
/// Reads index_n_heads, index_head_dim and index_topk.
Indexer read_indexer(Config& config);
/// Kimi's delta rule, by `linear_attn_config` or by linear_head_dim, linear_num_heads and
/// linear_conv_kernel_dim.
DeltaPart read_kimi_delta(Config& config);
/// Cohere's layers: attention and MLP after one layer norm without bias.
ModelDraft cohere_like(Config& config);
/// Reads n_layer, n_embd, n_head, n_inner and n_positions, the keys of GPT-2 and GPT-J.
ModelDraft read_gpt_shape(Config& config);

/// The class of the language model has no head: an untied one is simulated, not counted.
Model without_head(Model model);
/// A language model that a multimodal file has with its head, and a file of its own without.
Model inside_multimodal(Config& config, Model model);

/// Says that layers which predict further tokens are neither counted nor simulated: the class of
/// the type has none, whatever the file's keys state.
Model without_prediction(Config& config, Model model, std::initializer_list<const char*> keys);

/// A synonym of `key` in files of this type: its value where the file states it alone.
/// Errors  both are stated, and differ
void also_called(Config& config, const char* key, std::initializer_list<const char*> synonyms);

/// Marks keys as read that change neither counts nor times.
void heed(Config& config, std::initializer_list<std::string_view> keys);

/// Refuses keys that are true: this type's class has nothing for them, or nothing that is counted.
void refuse_true(Config& config, std::initializer_list<std::string_view> keys,
                 std::string_view problem);

/// ... of biases.
void refuse_biases(Config& config, std::initializer_list<std::string_view> keys);

/// What `per_layer_config` says of a layer.
std::optional<Node> of_layer(Config& config, std::int64_t layer);

/// Layers 0, n, 2n ...
std::vector<bool> every_nth_from_first(std::int64_t layers, std::int64_t n);

/// Gives the draft its layers, each as built() would, after `vary` has changed it.
void vary_layers(ModelDraft& model, const std::function<void(std::int64_t, Layer&)>& vary);

}  // namespace orrery::models
