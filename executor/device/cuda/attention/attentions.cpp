#include "executor/device/cuda/attention/attentions.hpp"

#include <fmt/format.h>

#include <bit>

#include "executor/device/cuda/attention/flash.hpp"
#include "executor/errors.hpp"
#include "sim/errors.hpp"

namespace orrery::executor::cuda {

namespace {

using models::AttentionShape;
using models::DType;
using models::Operation;
using models::OpKind;

constexpr const char* variable = "ORRERY_ATTENTION";

std::int64_t window_of(const AttentionShape& shape) {
  return shape.window < shape.seq ? shape.window : 0;
}

std::string words_of(const Operation& op) {
  const AttentionShape& s = op.attention();
  std::string words =
      fmt::format("attention {} {} {} x {}, heads {}/{} x {}",
                  op.kind == OpKind::attention ? "forward" : "backward", hardware::name(op.dtype),
                  s.batch, s.seq, s.heads, s.kv_heads, s.head_dim);
  if (s.causal) words += ", causal";
  if (window_of(s) > 0) words += fmt::format(", window {}", window_of(s));
  return words;
}

}  // namespace

AttentionOptions attention_options(const char* value) {
  if (value == nullptr || *value == '\0') return {};
  const std::string_view word{value};
  if (word == "own") return {.choice = AttentionChoice::own};
  if (word == "cudnn") return {.choice = AttentionChoice::library};
  if (word == "cudnn-ordered") return {AttentionChoice::library, SumOrder::fixed};
  throw InputError{variable, fmt::format("expected own, cudnn or cudnn-ordered, found '{}'", word)};
}

std::string in_one_line(std::string_view text) {
  constexpr std::size_t most = 300;
  std::string line;
  for (const char letter : text) {
    const bool blank = letter == ' ' || letter == '\n' || letter == '\t' || letter == '\r';
    if (!blank) line += letter;
    if (blank && !line.empty() && line.back() != ' ') line += ' ';
  }
  if (!line.empty() && line.back() == ' ') line.pop_back();
  if (line.size() > most) line.replace(most - 3, std::string::npos, "...");
  return line;
}

std::string attention_text(const FusedAttention& use) {
  const int all = use.by_library + use.by_own;
  if (all == 0) return {};
  if (use.by_library == 0) {
    return use.absence.empty() ? ", own attention"
                               : fmt::format(", own attention ({})", use.absence);
  }
  std::string text = ", attention by " + use.library;
  if (use.by_own > 0) text += fmt::format(" in {} of {} shapes", use.by_library, all);
  return text;
}

Attentions::Attentions(AttentionChoice choice, const std::function<OpenedLibrary()>& open) {
  if (choice == AttentionChoice::own) {
    absence_ = fmt::format("{} is own", variable);
    return;
  }
  OpenedLibrary opened = open();
  library_ = std::move(opened.library);
  absence_ = std::move(opened.absence);
  if (library_ == nullptr && choice == AttentionChoice::library) {
    throw InputError{variable, "cudnn: " + absence_};
  }
}

Attentions::Key Attentions::key_of(const Operation& op) {
  const AttentionShape& s = op.attention();
  return {static_cast<std::int64_t>(op.kind),
          static_cast<std::int64_t>(op.dtype),
          s.batch,
          s.seq,
          s.heads,
          s.kv_heads,
          s.head_dim,
          static_cast<std::int64_t>(s.causal),
          window_of(s),
          std::bit_cast<std::int64_t>(s.score_factor),
          is_whole(op) ? 0 : s.value_width()};
}

/// fp32 and fp64 are for comparisons: they always run on our own kernels, which are compared with
/// the CPU's.
Attentions::Choice& Attentions::choice_of(const Operation& op) {
  const auto [found, is_new] = choices_.try_emplace(key_of(op));
  Choice& choice = found->second;
  if (!is_new) return choice;
  choice.words = words_of(op);
  if (library_ == nullptr) return choice;
  if (bits(op.dtype) != 16) {
    choice.refusal = "used only for 16-bit formats";
    return choice;
  }
  if (!is_whole(op)) {
    choice.refusal = "used only for whole sequences with values as wide as keys";
    return choice;
  }
  PlannedAttention planned = library_->plan(op);
  choice.plan = std::move(planned.plan);
  choice.refusal = in_one_line(planned.refusal);
  return choice;
}

std::string Attentions::refusal(const Operation& op) {
  const Choice& choice = choice_of(op);
  if (choice.plan != nullptr) return {};
  std::string why = attention_refusal(op);
  if (why.empty() || library_ == nullptr) return why;
  return fmt::format("{}; {}: {}", why, library_->name(), choice.refusal);
}

std::int64_t Attentions::scratch_bytes(const Operation& op) {
  const Choice& choice = choice_of(op);
  return choice.plan != nullptr ? choice.plan->workspace().count() : attention_scratch_bytes(op);
}

void Attentions::launch(const Kernel& kernel, Stream stream, const KernelRoom& room) {
  Choice& choice = choice_of(*kernel.operation);
  choice.ran = true;
  if (!room.tokens.one_document) return launch_attention(kernel, stream, nullptr, room.tokens);
  if (choice.plan != nullptr && run_plan(choice, kernel, stream, room)) return;
  launch_attention(kernel, stream, room.scratch(Bytes{attention_scratch_bytes(*kernel.operation)}),
                   room.tokens);
}

/// Returns false if the plan failed and this shape runs on our own kernel from now on; throws if
/// that does not take it.
bool Attentions::run_plan(Choice& choice, const Kernel& kernel, Stream stream,
                          const KernelRoom& room) {
  try {
    choice.plan->run(kernel, stream, room.scratch(choice.plan->workspace()));
    return true;
  } catch (const RunFailure& failure) {
    if (!room.may_retry || !attention_refusal(*kernel.operation).empty()) throw;
    choice.refusal = in_one_line(fmt::format("its kernel failed: {}", failure.what()));
    choice.plan.reset();
    return false;
  }
}

std::string Attentions::line_of(const Choice& of) const {
  if (of.plan == nullptr) {
    if (library_ == nullptr) return fmt::format("{}: own kernel", of.words);
    return fmt::format("{}: own kernel ({}: {})", of.words, library_->name(), of.refusal);
  }
  std::string line = fmt::format("{}: {}, workspace {} B", of.words, library_->name(),
                                 of.plan->workspace().count());
  const std::string disorder = in_one_line(of.plan->disorder());
  if (disorder.empty()) return line;
  return fmt::format("{}, equal calls may differ in the last bits ({})", line, disorder);
}

std::vector<std::string> Attentions::notes() const {
  std::vector<std::string> lines;
  lines.push_back(library_ != nullptr
                      ? fmt::format("attention: {}", library_->name())
                      : fmt::format("attention: own kernels ({})", in_one_line(absence_)));
  for (const auto& [key, choice] : choices_) {
    if (choice.ran) lines.push_back(line_of(choice));
  }
  return lines;
}

FusedAttention Attentions::use() const {
  FusedAttention use;
  if (library_ != nullptr) use.library = library_->name();
  use.absence = in_one_line(absence_);
  for (const auto& [key, choice] : choices_) {
    if (choice.ran) ++(choice.plan != nullptr ? use.by_library : use.by_own);
  }
  return use;
}

}  // namespace orrery::executor::cuda
