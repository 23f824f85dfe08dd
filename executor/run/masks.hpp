#pragma once
// Which tokens of a sample a model must fill in, and what stands in their place.

#include <cstdint>
#include <span>

namespace orrery::executor {

/// Tokens of a sequence that are to be filled in: 15 %, at least one.
/// Source  Devlin et al. 2018, arXiv 1810.04805, section 3.1 and appendix A.1;
///         create_pretraining_data.py of its code (masked_lm_prob)
std::int64_t masked_tokens(std::int64_t sequence);

/// What a sample's masks are drawn from.
struct MaskedSample {
  std::uint64_t seed = 0;
  std::int64_t step = 0, sample = 0;  // of all steps, of the global batch
  std::int64_t vocabulary = 0;
};

/// Draws so many of the tokens, without regard to what they are. Of ten, 8 become the vocabulary's
/// last row, which stands for [MASK], one a random token, and one stays. Labels are the tokens that
/// stood there, -1 for all others; labels beyond the tokens are left.
void mask(const MaskedSample& of, std::span<std::int64_t> tokens, std::span<std::int64_t> labels);

}  // namespace orrery::executor
