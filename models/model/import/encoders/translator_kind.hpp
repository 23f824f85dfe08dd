#pragma once
// What readers of encoders share: heads of encoders of images, and how BART's relatives differ,
// whose readers of the decoder alone (encoders.cpp) and of both sides (encoder_decoder.cpp) share a
// table.

#include <algorithm>
#include <array>
#include <string>
#include <string_view>

#include "models/model/import/config.hpp"

namespace orrery::models {

struct TranslatorKind {
  std::string_view type;
  bool positions = true;       // a table of them, learned or fixed, is among the parameters
  std::int64_t extra = 0;      // rows of it beyond the longest sequence
  bool embedding_norm = true;  // after the embedding, on both sides
  bool final_norm = false;     // after the last layer, on both sides
  bool attention_biases = true;
  bool key_biases = true;
  bool tied_alone = true;  // is the head of the decoder alone tied, too?
  bool learns_positions = true;
};

inline constexpr std::array<TranslatorKind, 11> translator_kinds{{
    {.type = "bart", .extra = 2},
    {.type = "bigbird_pegasus", .attention_biases = false, .tied_alone = false},
    {.type = "blenderbot", .embedding_norm = false, .final_norm = true},
    {.type = "blenderbot-small"},
    {.type = "m2m_100",
     .positions = false,
     .embedding_norm = false,
     .final_norm = true,
     .learns_positions = false},
    {.type = "marian", .embedding_norm = false, .learns_positions = false},
    {.type = "mbart", .extra = 2, .final_norm = true},
    {.type = "mvp", .extra = 2},
    {.type = "pegasus", .embedding_norm = false, .final_norm = true, .learns_positions = false},
    {.type = "plbart", .extra = 2},
    {.type = "trocr", .extra = 2},
}};

/// The kind of a type that the table has.
inline const TranslatorKind& translator_kind(std::string_view type) {
  return *std::ranges::find(translator_kinds, type, &TranslatorKind::type);
}

/// Encoder and decoder of one of BART's relatives (encoder_decoder.cpp).
Model read_translation(Config& config, const TranslatorKind& kind);
/// Reads how many tokens of a sample an encoder reads, `most` at most, or assumes the usual number.
void read_source_len(Config& config, ModelDraft& model, std::int64_t most, std::int64_t usual);
/// Whisper's decoder alone (encoders.cpp).
Model read_speech_decoder(Config& config);

/// What an encoder of images has on top.
struct ImageHead {
  std::int64_t columns = 0;  // that the classifier reads
  bool pools = false;        // the class without a head has a pooler
};
/// Adds the head of the class that the file names (bert.cpp). Errors: a class whose head is not
/// known.
void add_image_head(Config& config, ModelDraft& model, const ImageHead& head);

}  // namespace orrery::models
