#pragma once
// Curves for a GPU that was not measured: the shares of peak of one that was. Within the same
// silicon this costs a few per cent, across generations ten to twenty, mostly too fast, so every
// loan is told by `borrowings`. Never lends residuals or absolute rates.

#include <string>
#include <vector>

#include "hardware/gpu.hpp"

namespace orrery::hardware {

/// Catalogue names of the GPUs that lend curves to a generation, the nearest first.
std::vector<std::string> lenders(Generation generation);

/// What is missing is filled from `lenders` in order; a curve without a source is missing. A format
/// that has a peak but no curve takes, in this order: a lender's curve of that very format; the
/// GPU's own bf16 or fp16 curve (the product alone reaches the same share in all of them, fp8 on
/// H100 and B200 included); a lender's bf16 curve. Lenders are GPUs as their files give them,
/// themselves without loans.
void borrow_curves(Gpu& gpu, const std::vector<Gpu>& lenders);

}  // namespace orrery::hardware
