// Encoder-decoder models from their configs: parameters and FLOPs by hand and by the lists of
// operations in the catalogue, what is assumed, what is refused.

#include <algorithm>
#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "models/model/counts.hpp"
#include "models/model/model.hpp"
#include "models/model/operation_list.hpp"
#include "models/plan/conflicts.hpp"
#include "sim/errors.hpp"
#include "tests/models/questions.hpp"

namespace orrery::models {
namespace {

Model encoder_decoder(const std::string& text) {
  return read_model(Document::parse(text, "config.json").root());
}

std::string encoder_decoder_refusal(const std::string& text) {
  try {
    encoder_decoder(text);
  } catch (const InputError& error) {
    return error.what();
  }
  return "accepted";
}

bool says(const Model& model, std::string_view assumption) {
  return std::ranges::any_of(model.assumptions,
                             [&](const std::string& each) { return each.starts_with(assumption); });
}

/// google/t5-v1_1-xxl.
const std::string t5_v1_1_xxl =
    R"({"model_type": "t5", "vocab_size": 32128, "d_model": 4096, "d_kv": 64, "d_ff": 10240,
        "num_layers": 24, "num_decoder_layers": 24, "num_heads": 64,
        "feed_forward_proj": "gated-gelu", "tie_word_embeddings": false)";

/// openai/whisper-large-v3.
const std::string whisper_large =
    R"({"model_type": "whisper", "vocab_size": 51866, "d_model": 1280, "encoder_layers": 32,
        "encoder_attention_heads": 20, "decoder_layers": 32, "decoder_attention_heads": 20,
        "encoder_ffn_dim": 5120, "decoder_ffn_dim": 5120, "num_mel_bins": 128)";

TEST_CASE("T5 from its config computes what the catalogue's list of operations does") {
  const Model read = encoder_decoder(t5_v1_1_xxl + "}");
  const Model listed = catalogue_model("t5-xxl");
  // As published it has a head of its own, which the library's class ties to the table.
  CHECK(listed.parameters == 11'135'332'352);
  CHECK(read.parameters == listed.parameters - 32'128 * 4096);
  CHECK(says(read, "/tie_word_embeddings: a tied head assumed"));
  // 512 tokens on both sides. The list counts a causal mask's half as layers do.
  CHECK(forward_flops_per_token(read, 512) * 512 == Approx(listed.list->matrix_flops()));
  CHECK(read.ignored_keys == std::vector<std::string>{});
  CHECK(!read.not_simulated);
  CHECK(read.inexact == "relative positions added to scores");
}

TEST_CASE("Whisper from its config computes what the catalogue's list of operations does") {
  const Model read = encoder_decoder(whisper_large + "}");
  const Model listed = catalogue_model("whisper-large-v3");
  CHECK(read.parameters == 1'543'490'560);  // openai/whisper-large-v3's model card: 1,550 M
  CHECK(read.parameters == listed.parameters);
  CHECK(source_length(read) == 1500);
  CHECK(forward_flops_per_token(read, 448) * 448 == Approx(listed.list->matrix_flops()));
  // openai/whisper-tiny, the type's defaults.
  CHECK(encoder_decoder(R"({"model_type": "whisper"})").parameters == 37'760'640);
}

TEST_CASE("BART's relatives have norms of sums, or norms before parts and a last one") {
  // facebook/bart-large, facebook/mbart-large-50 and google/pegasus-large, as their classes count.
  const Model bart = encoder_decoder(R"({"model_type": "bart", "vocab_size": 50265})");
  CHECK(bart.parameters == 406'291'456);
  CHECK(bart.norms.after_residual);
  CHECK_FALSE(bart.norms.final);
  CHECK(bart.layers.size() == 24);
  CHECK(bart.layers[11].encodes());
  CHECK(bart.layers[12].cross);
  CHECK_FALSE(bart.not_simulated);
  CHECK(bart.inexact.empty());
  const Model mbart = encoder_decoder(R"({"model_type": "mbart", "vocab_size": 250054})");
  CHECK(mbart.parameters == 610'879'488);
  CHECK(mbart.norms.final);
  CHECK_FALSE(mbart.norms.after_residual);
  const Model marian = encoder_decoder(
      R"({"model_type": "marian", "vocab_size": 100, "decoder_vocab_size": 80,
          "share_encoder_decoder_embeddings": false})");
  CHECK(marian.encoder->vocab == 100);
  CHECK(marian.embedding.vocab == 80);
  CHECK(marian.inexact == "positions that are fixed");
}

TEST_CASE("What an encoder-decoder's config leaves open is assumed, and said") {
  const Model read = encoder_decoder(t5_v1_1_xxl + "}");
  CHECK(source_length(read) == 512);
  CHECK(read.encoder->length_assumed);
  CHECK(says(read, "/source_len: 512 assumed, the tokens of a sequence that the encoder reads"));
  const Model stated = encoder_decoder(t5_v1_1_xxl + R"(, "source_len": 114})");
  CHECK(source_length(stated) == 114);
  CHECK_FALSE(stated.encoder->length_assumed);
  CHECK_FALSE(encoder_decoder(whisper_large + "}").encoder->length_assumed);
}

TEST_CASE("A mistake in an encoder-decoder's config has its place") {
  CHECK(encoder_decoder_refusal(t5_v1_1_xxl + R"(, "source_len": 0})")
            .starts_with("config.json:/source_len: expected an integer from 1 to"));
  CHECK(encoder_decoder_refusal(R"({"model_type": "bart", "source_len": 1025})")
            .starts_with("config.json:/source_len: expected an integer from 1 to 1024"));
  CHECK(encoder_decoder_refusal(R"({"model_type": "whisper", "d_model": 100})") ==
        "config.json:/d_model: 100 is not a multiple of the 6 attention heads");
  for (const char* type : {"bart", "whisper", "nllb-moe"}) {
    CHECK(encoder_decoder_refusal(
              std::string{R"({"model_type": ")"} + type +
              R"(", "encoder_attention_heads": 2, "decoder_attention_heads": 4})") ==
          "config.json:/decoder_attention_heads: differs from encoder_attention_heads");
  }
}

TEST_CASE("Encoder-decoders are simulated by type, with the cuts that their layers have") {
  for (const std::string& config :
       {t5_v1_1_xxl + "}", whisper_large + "}", std::string{R"({"model_type": "bart"})"},
        std::string{R"({"model_type": "mt5"})"}, std::string{R"({"model_type": "umt5"})"},
        std::string{R"({"model_type": "pegasus"})"}, std::string{R"({"model_type": "m2m_100"})"},
        std::string{R"({"model_type": "marian"})"}, std::string{R"({"model_type": "blenderbot"})"},
        std::string{R"({"model_type": "switch_transformers"})"},
        std::string{R"({"model_type": "nllb-moe", "num_experts": 8})"},
        std::string{R"({"model_type": "mllama_text_model"})"}}) {
    INFO(config);
    Question asked =
        question("gpt2", "dgx-h100 x 1", "micro_batch=1,global_batch=8,zero=3,seq_len=64");
    asked.model = encoder_decoder(config);
    CHECK(conflicts(asked).empty());
    CHECK(predict(asked).step > Time{});
    asked.plan.tensor = 2;
    asked.plan.data = 4;
    asked.plan.sequence_parallel = true;
    CHECK(conflicts(asked).empty());
    CHECK(predict(asked).step > Time{});
    asked.plan.pipeline = 2;
    asked.plan.data = 2;
    REQUIRE(conflicts(asked).size() == 1);
    CHECK(conflicts(asked)[0].pointer == "/plan/pipeline");
  }
}

TEST_CASE("Mllama's layers attend to rows that are given") {
  // 4 tiles of 560 / 14 = 40 x 40 patches and one row more.
  const Model read = encoder_decoder(R"({"model_type": "mllama_text_model"})");
  CHECK(source_length(read) == 4 * 1601);
  CHECK(read.layers.count_if([](const Layer& each) { return each.cross.has_value(); }) == 8);
  CHECK(std::holds_alternative<NoPart>(read.layers[3].mixer));
  CHECK(read.layers[3].cross);
  CHECK_FALSE(read.not_simulated);
}

}  // namespace
}  // namespace orrery::models
