#include <catch2/catch.hpp>
#include <string>

#include "models/model/counts.hpp"
#include "models/model/model.hpp"
#include "sim/errors.hpp"
#include "tests/models/questions.hpp"

namespace orrery::models {
TEST_CASE("A tiny GPT's parameters are those counted by hand") {
  // h = 4, one layer, 2 heads, f = 16, V = 10, P = 6:
  // tables (10 + 6) 4 = 64; attention 3*16 + 12 + 16 + 4 = 80; MLP 64 + 16 + 64 + 4 = 148;
  // two norms of 8 in the layer and one at the end: 24. Sum 316.
  ModelDraft model;
  model.depth = 1;
  model.hidden = 4;
  model.attention.heads = model.attention.kv_heads = 2;
  model.attention.head_dim = 2;
  model.mlp.width = 16;
  model.embedding.vocab = 10;
  model.embedding.max_positions = 6;
  CHECK(built(model).parameters == 316);
  CHECK(built(model).formula == "Vh + Ph + L(h(q+2k) + qh + 2hf + q+2k + h + f+h + 2*2h) + 2h");

  // Untied: a second table of 40. Two spare position rows: 8.
  model.embedding.tied = false;
  model.embedding.extra_position_rows = 2;
  CHECK(built(model).parameters == 364);
}

TEST_CASE("A tiny LLaMA's parameters are those counted by hand") {
  // h = 4, 2 heads of 3, one key-value head, f = 5, V = 10: tables 2 * 40; attention
  // 4 (6 + 6) + 24 = 72; MLP 3 * 20; q and k norms 2 * 3; norms 4 + 4 + 4. Sum 230.
  ModelDraft model;
  model.norms.kind = Norm::rms_norm;
  model.embedding.positions = Positions::rotary;
  model.mlp.gated = true;
  model.attention.qkv_bias = model.attention.output_bias = model.mlp.bias = false;
  model.embedding.tied = false;
  model.attention.qk_norm = true;
  model.depth = 1;
  model.hidden = 4;
  model.attention.heads = 2;
  model.attention.kv_heads = 1;
  model.attention.head_dim = 3;
  model.mlp.width = 5;
  model.embedding.vocab = 10;
  model.embedding.max_positions = 6;
  CHECK(built(model).parameters == 230);
  CHECK(position_rows(model) == 0);
}

TEST_CASE("A layer with experts has a router and as many MLPs") {
  // Two layers: E = 8 experts of 2 h f next to a router of h E, in place of one MLP of 2 h f.
  ModelDraft dense;
  dense.depth = 2;
  dense.hidden = 8;
  dense.attention.heads = dense.attention.kv_heads = 2;
  dense.attention.head_dim = 4;
  dense.mlp.width = 32;
  dense.embedding.vocab = 16;
  dense.mlp.bias = false;
  ModelDraft experts = dense;
  experts.experts.count = 8;
  experts.experts.per_token = 2;
  const std::int64_t mlp = 2 * 8 * 32;
  CHECK(built(experts).parameters - built(dense).parameters == 2 * (8 * 8 + 7 * mlp));
  CHECK(built(experts).active_parameters - built(dense).parameters == 2 * (8 * 8 + mlp));
}

TEST_CASE("GPT-3 175B multiplies 353,982,480,384 FLOPs per token forward") {
  // Megatron's formula (arXiv 2104.04473) per token with attention halved:
  // 24 l h^2 + 2 l s h + 2 V h = 347,892,350,976 + 4,831,838,208 + 1,258,291,200.
  CHECK(forward_flops_per_token(catalogue_model("gpt3-175b"), 2048) == 353'982'480'384.0);
}

TEST_CASE("Llama 3 8B and 70B forward FLOPs per token match the sum by hand") {
  // 8B: layer 4096 (4096 + 2 * 1024) + 4096^2 + 3 * 4096 * 14336 = 218,103,808; 32 of them and the
  // head's 525,336,576 are 7,504,658,432 weights, twice each; attention 32 * 4 * 4096 * 8192 / 2.
  CHECK(forward_flops_per_token(catalogue_model("llama3-8b"), 8192) ==
        2.0 * 7'504'658'432.0 + 2'147'483'648.0);
  // 70B: layer 855,638,016; 80 of them and the head's 1,050,673,152; attention 80 * 4 * 8192 *
  // 4096.
  CHECK(forward_flops_per_token(catalogue_model("llama3-70b"), 8192) ==
        2.0 * 69'501'714'432.0 + 10'737'418'240.0);
}

TEST_CASE("An encoder attends to every token and has its head's transform") {
  // 24 * 12 * 1024^2 + 1024^2 + 30522 * 1024 = 334,292,992 weights; attention 24 * 4 * 1024 * 512.
  CHECK(forward_flops_per_token(catalogue_model("bert-large"), 512) ==
        2.0 * 334'292'992.0 + 50'331'648.0);
}

TEST_CASE("A sliding window bounds what a token attends to") {
  // w = 4096 of s = 8192: 4096 - 4096^2 / 16384 = 3072 tokens, not 4096; 32 * 4 * 4096 = 524,288
  // FLOPs for each.
  const Model windowed = catalogue_model("mistral-7b");
  const Model full = changed(windowed, [](ModelDraft& draft) { draft.attention.window = 0; });
  CHECK(forward_flops_per_token(full, 8192) - forward_flops_per_token(windowed, 8192) ==
        1024.0 * 524'288.0);
  CHECK(forward_flops_per_token(full, 4096) == forward_flops_per_token(windowed, 4096));
}

TEST_CASE("An indexer bounds what a token attends to as a window of as many tokens would") {
  AttentionPart chosen = usual_attention(catalogue_model("mistral-7b"));
  AttentionPart windowed = chosen;
  chosen.window = 0;
  chosen.indexer = Indexer{.heads = 4, .dim = 128, .top = 2048};
  windowed.window = 2048;
  CHECK(attended_tokens(chosen, true, 65536) == attended_tokens(windowed, true, 65536));
  chosen.indexer->top = 1 << 20;
  CHECK(attended_tokens(chosen, true, 65536) == 32768);
}

TEST_CASE("Published training budgets are three times forward within their own approximation") {
  // Both papers count 6 N D, which leaves attention out and counts embeddings in: GPT-3 3.14e23
  // for 300 B tokens (arXiv 2005.14165, appendix D), Llama 3 405B 3.8e25 for 15.6 T (2407.21783).
  const double gpt3 = 3.0 * forward_flops_per_token(catalogue_model("gpt3-175b"), 2048) * 300e9;
  CHECK(gpt3 == Approx(3.14e23).epsilon(0.02));
  const double llama =
      3.0 * forward_flops_per_token(catalogue_model("llama3.1-405b"), 8192) * 15.6e12;
  CHECK(llama == Approx(3.8e25).epsilon(0.04));
}

}  // namespace orrery::models
