// Encoder-decoder models from their configs: parameters, FLOPs and operations by hand.

#include <catch2/catch.hpp>
#include <string>
#include <vector>

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

TEST_CASE("T5 from its config is the list of operations that the catalogue has") {
  const Model read = encoder_decoder(t5_v1_1_xxl + "}");
  const Model listed = catalogue_model("t5-xxl");
  CHECK(read.parameters == 11'135'332'352);
  CHECK(read.parameters == listed.parameters);
  REQUIRE(read.list);
  CHECK(read.list->forward_flops() == listed.list->forward_flops());
  CHECK(read.ignored_keys == std::vector<std::string>{});
  CHECK(!read.not_simulated);
}

TEST_CASE("Cross-attention multiplies the encoder's tokens, too") {
  // A layer of T5-XXL's decoder with 512 tokens on each side: 4 x 4096 x 4096 = 67,108,864
  // parameters, of which half see the decoder's tokens. FLOPs of the pair of lengths (a, b) minus
  // those of (a', b): only what the decoder's own tokens do.
  const auto at = [](int source, int target) {
    return encoder_decoder(t5_v1_1_xxl + R"(, "parameters": {"source": )" + std::to_string(source) +
                           R"(, "target": )" + std::to_string(target) + "}}");
  };
  // One more source token: an encoder layer's matrices (4 h h + 3 h f), its attention over one more
  // token on either side, keys and values of the decoder (2 h h), and 4 h for each decoder token
  // that attends to it.
  const double h = 4096, f = 10240, layers = 24, source = 512, target = 512;
  const double encoder = 2 * (4 * h * h + 3 * h * f) + 4 * h * (2 * source + 1);
  const double decoder = 2 * 2 * h * h + 4 * h * target;
  CHECK(at(513, 512).list->forward_flops() - at(512, 512).list->forward_flops() ==
        Approx(layers * (encoder + decoder)).epsilon(1e-6));
}

TEST_CASE("Whisper from its config is the list of operations that the catalogue has") {
  const Model read = encoder_decoder(whisper_large + "}");
  const Model listed = catalogue_model("whisper-large-v3");
  CHECK(read.parameters == 1'543'490'560);  // openai/whisper-large-v3's model card: 1,550 M
  CHECK(read.parameters == listed.parameters);
  CHECK(read.list->forward_flops() == listed.list->forward_flops());
  // openai/whisper-tiny, the type's defaults.
  CHECK(encoder_decoder(R"({"model_type": "whisper"})").parameters == 37'760'640);
}

TEST_CASE("What an encoder-decoder's config leaves open is assumed, and said") {
  const Model read = encoder_decoder(t5_v1_1_xxl + R"(, "parameters": {"target": 114}})");
  REQUIRE(read.list->assumed().size() == 3);
  CHECK(read.list->assumed()[0] ==
        R"(512 source tokens of a sample; /model/parameters={"source": N} states others)");
}

TEST_CASE("A mistake in an encoder-decoder's config has its place") {
  CHECK(encoder_decoder_refusal(t5_v1_1_xxl + R"(, "parameters": {"source": 0}})")
            .starts_with("config.json:/parameters/source: expected an integer from 1 to"));
  CHECK(encoder_decoder_refusal(whisper_large + R"(, "parameters": {"target": 449}})")
            .starts_with("config.json:/parameters/target: expected an integer from 1 to 448"));
  CHECK(encoder_decoder_refusal(t5_v1_1_xxl + R"(, "parameters": {"tokens": 1}})")
            .starts_with("config.json:/parameters/tokens: "));
  CHECK(encoder_decoder_refusal(R"({"model_type": "whisper", "d_model": 100})") ==
        "config.json:/d_model: 100 is not a multiple of the 6 attention heads");
}

TEST_CASE("Replicas of an encoder-decoder are simulated, cuts are refused by name") {
  Question asked = question("t5-xxl", "dgx-h100 x 1", "micro_batch=4,global_batch=32");
  asked.model = encoder_decoder(t5_v1_1_xxl + "}");
  CHECK(conflicts(asked).empty());
  CHECK(predict(asked).step > Time{});
  asked.plan.tensor = 2;
  asked.plan.data = 4;
  REQUIRE(conflicts(asked).size() == 1);
  CHECK(conflicts(asked)[0].pointer == "/plan/tensor");
}

}  // namespace
}  // namespace orrery::models
