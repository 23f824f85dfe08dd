#pragma once
// Masked language modelling (BERT): which tokens of a sample are to be predicted, and what replaces
// them in the input.

#include <cstdint>
#include <span>

namespace orrery::executor {

/// Number of masked tokens of a sequence: 15 %, at least one.
/// Source  Devlin et al. 2018, arXiv 1810.04805, section 3.1 and appendix A.1;
///         create_pretraining_data.py of its code (masked_lm_prob)
std::int64_t masked_tokens(std::int64_t sequence);

/// Identifies the sample for which masks are drawn.
struct MaskedSample {
  std::uint64_t seed = 0;
  std::int64_t step = 0, sample = 0;  // index of the step; of the sample in the global batch
  std::int64_t vocabulary = 0;
};

/// Masks that many tokens at random positions, whatever they are. Of ten, on average, 8 become the
/// vocabulary's last row, which stands for [MASK], one becomes a random token, and one stays.
/// `labels` gets the original tokens there and -1 elsewhere; labels beyond `tokens` are untouched.
void mask(const MaskedSample& of, std::span<std::int64_t> tokens, std::span<std::int64_t> labels);

}  // namespace orrery::executor
