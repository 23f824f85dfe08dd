#include "scenarios/exchange/shell.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <optional>
#include <utility>

#include "sim/errors.hpp"
#include "sim/input/text.hpp"

namespace orrery::scenarios {

namespace {

constexpr char mark = ShellWord::unknown_mark;

bool is_name_start(char c) {
  return std::isalpha(static_cast<unsigned char>(c)) || c == '_';
}
bool is_name_part(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) || c == '_';
}
bool is_blank(char c) {
  return c == ' ' || c == '\t' || c == '\r';
}
bool ends_word(char c) {
  return is_blank(c) || std::string_view{"\n;&|<>()"}.find(c) != std::string_view::npos;
}

constexpr std::size_t most_variable = std::size_t{1} << 20;  // bytes

/// Reads a script once, from its first byte to its last.
class ShellReader {
 public:
  ShellReader(std::string_view text, const std::string& file) : text_{text}, file_{file} {}

  ShellScript read() {
    while (!at_end()) command();
    return std::move(script_);
  }

 private:
  using Fields = std::vector<std::string>;

  bool at_end() const { return at_ >= text_.size(); }
  char peek(std::size_t ahead = 0) const {
    return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0';
  }
  std::size_t line() const {
    const std::size_t here = std::min(at_, text_.size());
    if (here < counted_to_) line_ = 1, counted_to_ = 0;
    for (; counted_to_ < here; ++counted_to_) line_ += text_[counted_to_] == '\n' ? 1 : 0;
    return line_;
  }
  [[noreturn]] void fail(const std::string& problem) const {
    throw InputError{fmt::format("{}:line {}", file_, line()), problem};
  }
  std::string rest_of_line() {
    const std::size_t end = std::min(text_.find('\n', at_), text_.size());
    const std::string line{text_.substr(at_, end - at_)};
    at_ = end;
    return line;
  }

  void skip_blanks() {
    while (!at_end()) {
      if (is_blank(peek())) {
        ++at_;
      } else if (peek() == '\\' && (peek(1) == '\n' || (peek(1) == '\r' && peek(2) == '\n'))) {
        at_ += peek(1) == '\n' ? 2 : 3;
      } else {
        return;
      }
    }
  }

  /// One simple command up to its separator.
  void command() {
    std::vector<ShellWord> words;
    bool declares = false;
    while (true) {
      skip_blanks();
      if (at_end() || std::string_view{"\n;&|()"}.find(peek()) != std::string_view::npos) break;
      if (peek() == '#') {
        comment();
      } else if (peek() == '<' || peek() == '>') {
        redirection();
      } else if ((words.empty() || declares) && assignment(declares)) {
        continue;
      } else {
        const std::size_t line = this->line();
        for (std::string& field : word(true)) words.push_back({std::move(field), line});
        if (words.size() == 1 && is_reserved(words.front().text)) words.clear();
        if (words.size() == 1) declares = is_declaration(words.front().text);
      }
    }
    if (!at_end()) ++at_;
    if (!words.empty() && skipped_ == 0) script_.commands.push_back(std::move(words));
  }

  static bool is_declaration(std::string_view word) {
    constexpr std::array<std::string_view, 5> words{"export", "declare", "local", "readonly",
                                                    "typeset"};
    return std::ranges::find(words, word) != words.end();
  }

  /// Handles what begins or ends a compound command.
  bool is_reserved(std::string_view word) {
    constexpr std::array<std::string_view, 11> plain{"then", "do",   "done",  "{",   "}",       "!",
                                                     "time", "exec", "while", "env", "function"};
    if (word == "if") {
      script_.notes.push_back(fmt::format("line {}: the condition is taken as true", line()));
      if (skipped_ > 0) ++skipped_;
      return true;
    }
    if (word == "else" || word == "elif") {
      if (skipped_ == 0) skipped_ = 1;
      return true;
    }
    if (word == "fi") {
      if (skipped_ > 0) --skipped_;
      return true;
    }
    return std::ranges::find(plain, word) != plain.end();
  }

  void comment() {
    const std::string line_text = rest_of_line();
    constexpr std::string_view batch = "#SBATCH";
    if (line_text.rfind(batch, 0) != 0) return;
    const std::string words = line_text.substr(batch.size());
    ShellReader inner{words, file_};
    for (const auto& command : inner.read().commands) {
      for (ShellWord each : command) script_.batch.push_back({each.text, line()});
    }
  }

  void redirection() {
    const bool here = peek() == '<' && peek(1) == '<' && peek(2) != '<';
    while (peek() == '<' || peek() == '>' || peek() == '&' || peek() == '-') ++at_;
    skip_blanks();
    const Fields target = word(false);
    if (!here || target.empty()) return;
    script_.notes.push_back(
        fmt::format("line {}: the text up to {} is not read", line(), target[0]));
    rest_of_line();
    while (!at_end()) {
      ++at_;
      if (trimmed(rest_of_line()) == target[0]) return;
    }
  }

  /// NAME=WORD, NAME+=WORD or NAME=(WORDS); false if the next word is none of these.
  bool assignment(bool exported) {
    std::size_t end = at_;
    if (!is_name_start(peek())) return false;
    while (end < text_.size() && is_name_part(text_[end])) ++end;
    const std::string name{text_.substr(at_, end - at_)};
    const bool adds = end + 1 < text_.size() && text_[end] == '+' && text_[end + 1] == '=';
    if (!adds && (end >= text_.size() || text_[end] != '=')) return false;
    at_ = end + (adds ? 2 : 1);
    const std::size_t line = this->line();
    Fields value;
    const bool listed = peek() == '(';
    if (listed) {
      value = array();
    } else if (at_end() || ends_word(peek())) {
      value = {""};
    } else {
      value = word(false);
    }
    if (skipped_ > 0) return true;
    Fields& known = variables_[name];
    if (!adds) known.clear();
    if (adds && !listed && !known.empty() && !value.empty()) {
      known.back() += value[0];
    } else {
      known.insert(known.end(), value.begin(), value.end());
    }
    std::size_t bytes = 0;
    for (const std::string& each : known) bytes += each.size();
    if (bytes > most_variable || known.size() > most_variable / 16) {
      fail(fmt::format("variable {} is longer than 1 MiB", name));
    }
    if ((exported || name.rfind("NCCL_", 0) == 0) && !known.empty()) {
      script_.environment[name] = {known[0], line};
    }
    return true;
  }

  Fields array() {
    Fields elements;
    ++at_;
    while (true) {
      skip_blanks();
      if (at_end()) fail("an array is not closed: expected )");
      if (peek() == ')') break;
      if (peek() == '#') {
        rest_of_line();
      } else if (std::string_view{"\n;&|<>("}.find(peek()) != std::string_view::npos) {
        ++at_;
      } else {
        for (std::string& field : word(true)) elements.push_back(std::move(field));
      }
    }
    ++at_;
    return elements;
  }

  /// The fields of one word. splits  whether blanks of unquoted expansions separate fields
  Fields word(bool splits) {
    Fields fields;
    std::string current;
    bool present = false;
    while (!at_end() && !ends_word(peek())) {
      const char c = peek();
      if (c == '\'') {
        current += single_quoted();
        present = true;
      } else if (c == '"') {
        present = double_quoted(fields, current) || present;
      } else if (c == '\\') {
        ++at_;
        if (peek() == '\n') {
          ++at_;
        } else if (!at_end()) {
          current += text_[at_++];
          present = true;
        }
      } else if (c == '$' || c == '`') {
        const Fields expanded = expansion();
        present = unquoted(expanded, splits, fields, current) || present;
      } else {
        current += c;
        present = true;
        ++at_;
      }
    }
    if (present) fields.push_back(current);
    return fields;
  }

  /// Adds an unquoted expansion; whether `current` holds something now.
  static bool unquoted(const Fields& expanded, bool splits, Fields& fields, std::string& current) {
    bool present = !current.empty();
    for (std::size_t i = 0; i < expanded.size(); ++i) {
      if (i > 0 && splits && present) {
        fields.push_back(std::exchange(current, {}));
        present = false;
      } else if (i > 0 && !splits) {
        current += ' ';
      }
      for (const char c : expanded[i]) {
        const bool blank = is_blank(c) || c == '\n';
        if (blank && splits) {
          if (present) fields.push_back(std::exchange(current, {}));
          present = false;
        } else {
          current += c;
          present = true;
        }
      }
    }
    return present;
  }

  std::string single_quoted() {
    const std::size_t end = text_.find('\'', at_ + 1);
    if (end == std::string_view::npos) fail("a quote is not closed: expected '");
    const std::string inside{text_.substr(at_ + 1, end - at_ - 1)};
    at_ = end + 1;
    return inside;
  }

  /// Whether the quoted text is a word, even if empty: "${EMPTY[@]}" is none.
  bool double_quoted(Fields& fields, std::string& current) {
    ++at_;
    bool present = peek() != '$';
    while (peek() != '"') {
      if (at_end()) fail("a quote is not closed: expected \"");
      if (peek() == '\\' && std::string_view{"$`\"\\\n"}.find(peek(1)) != std::string_view::npos) {
        if (peek(1) != '\n') current += peek(1);
        at_ += 2;
      } else if (peek() == '$' || peek() == '`') {
        const Fields expanded = expansion();
        for (std::size_t i = 0; i < expanded.size(); ++i) {
          if (i > 0) fields.push_back(std::exchange(current, {}));
          current += expanded[i];
          present = true;
        }
      } else {
        current += text_[at_++];
        present = true;
      }
    }
    ++at_;
    return present;
  }

  static std::string unknown(std::string_view what) {
    return fmt::format("{}{}{}", mark, what, mark);
  }

  /// The inside of a bracket that `at_` is in, which `close` ends; `at_` is then after it.
  std::string_view inside(char open, char close) {
    const std::size_t begin = at_;
    for (int depth = 1; !at_end(); ++at_) {
      if (peek() == '\\') ++at_;
      if (peek() == open) ++depth;
      if (peek() == close && --depth == 0) {
        ++at_;
        return text_.substr(begin, at_ - begin - 1);
      }
    }
    fail(fmt::format("an expansion is not closed: expected {}", close));
  }

  Fields expansion() {
    if (peek() == '`') {
      ++at_;
      const std::size_t end = text_.find('`', at_);
      if (end == std::string_view::npos) fail("a command is not closed: expected `");
      const std::string_view code = text_.substr(at_, end - at_);
      at_ = end + 1;
      return {unknown(fmt::format("`{}`", code))};
    }
    ++at_;
    if (peek() == '(') return bracketed();
    if (peek() == '{') {
      ++at_;
      return parameter(inside('{', '}'));
    }
    if (!is_name_start(peek())) {
      if (at_end() || ends_word(peek()) || peek() == '"') return {"$"};
      return positional(text_.substr(at_++, 1));
    }
    const std::size_t begin = at_;
    while (!at_end() && is_name_part(peek())) ++at_;
    return variable(text_.substr(begin, at_ - begin));
  }

  Fields bracketed() {
    ++at_;
    const std::string_view code = inside('(', ')');
    if (code.size() > 1 && code.front() == '(' && code.back() == ')') {
      if (const auto value = arithmetic(code.substr(1, code.size() - 2))) {
        return {std::to_string(*value)};
      }
    }
    return {unknown(fmt::format("$({})", code))};
  }

  static Fields positional(std::string_view name) {
    if (name == "@" || name == "*") return {};
    return {unknown(fmt::format("${{{}}}", name))};
  }

  Fields variable(std::string_view name) const {
    const auto found = variables_.find(name);
    if (found == variables_.end()) return {unknown(fmt::format("${{{}}}", name))};
    return found->second.empty() ? Fields{""} : Fields{found->second.front()};
  }

  /// ${...}: a name with an index, or a default.
  Fields parameter(std::string_view code) {
    std::size_t end = 0;
    while (end < code.size() && is_name_part(code[end])) ++end;
    const std::string_view name = code.substr(0, end), rest = code.substr(end);
    if (name.empty())
      return rest == "@" || rest == "*" ? Fields{} : Fields{unknown(fmt::format("${{{}}}", code))};
    const auto found = variables_.find(name);
    const bool known = found != variables_.end();
    if (rest == "[@]" || rest == "[*]") {
      return known ? found->second : Fields{unknown(fmt::format("${{{}}}", code))};
    }
    const bool colon = rest.starts_with(":");
    const std::string_view operation = colon ? rest.substr(1) : rest;
    const bool empty = known && (found->second.empty() || found->second.front().empty());
    if (!operation.empty() &&
        std::string_view{"-=+?"}.find(operation[0]) != std::string_view::npos) {
      const bool missing = !known || (colon && empty);
      if (operation[0] == '+') return missing ? Fields{} : nested(operation.substr(1));
      if (missing && operation[0] != '?') return nested(operation.substr(1));
      if (missing) return {unknown(fmt::format("${{{}}}", name))};
      return variable(name);
    }
    if (!rest.empty()) return {unknown(fmt::format("${{{}}}", code))};
    if (std::isdigit(static_cast<unsigned char>(name[0]))) return positional(name);
    return variable(name);
  }

  /// The words of a default, which may hold expansions.
  Fields nested(std::string_view code) {
    const std::string quoted = "\"" + std::string{code} + "\"";
    const bool has_quotes = code.find_first_of("'\"") != std::string_view::npos;
    const std::string source = has_quotes ? std::string{code} : quoted;
    if (nested_ > 32) fail("defaults are nested more than 32 deep");
    ShellReader inner{source, file_};
    inner.variables_ = variables_;
    inner.nested_ = nested_ + 1;
    Fields fields = inner.word(false);
    return fields.empty() ? Fields{""} : fields;
  }

  /// The value of integers with + - * / % and parentheses; nothing if a part is not known.
  std::optional<std::int64_t> arithmetic(std::string_view code) const {
    std::size_t at = 0;
    const auto value = sum(code, at);
    while (at < code.size() && is_blank(code[at])) ++at;
    return at == code.size() ? value : std::nullopt;
  }
  std::optional<std::int64_t> sum(std::string_view code, std::size_t& at) const {
    auto value = product(code, at);
    while (value && at < code.size() && (code[at] == '+' || code[at] == '-')) {
      const char sign = code[at++];
      const auto right = product(code, at);
      std::int64_t total = 0;
      if (!right || (sign == '+' ? __builtin_add_overflow(*value, *right, &total)
                                 : __builtin_sub_overflow(*value, *right, &total))) {
        return std::nullopt;
      }
      value = total;
    }
    return value;
  }
  std::optional<std::int64_t> product(std::string_view code, std::size_t& at) const {
    auto value = factor(code, at);
    while (value && at < code.size() &&
           std::string_view{"*/%"}.find(code[at]) != std::string_view::npos) {
      const char sign = code[at++];
      const auto right = factor(code, at);
      if (!right || (sign != '*' && (*right == 0 || *right == -1))) return std::nullopt;
      std::int64_t total = 0;
      if (sign == '*' && __builtin_mul_overflow(*value, *right, &total)) return std::nullopt;
      value = sign == '*' ? total : sign == '/' ? *value / *right : *value % *right;
    }
    return value;
  }
  std::optional<std::int64_t> factor(std::string_view code, std::size_t& at) const {
    const auto blanks = [&] {
      while (at < code.size() && is_blank(code[at])) ++at;
    };
    blanks();
    if (at < code.size() && code[at] == '(' && depth_ < 64) {
      ++at;
      ++depth_;
      const auto value = sum(code, at);
      --depth_;
      if (!value || at >= code.size() || code[at] != ')') return std::nullopt;
      ++at;
      blanks();
      return value;
    }
    while (at < code.size() && (code[at] == '$' || code[at] == '{' || code[at] == '}')) ++at;
    const std::size_t begin = at;
    while (at < code.size() && is_name_part(code[at])) ++at;
    const std::string_view name = code.substr(begin, at - begin);
    while (at < code.size() && code[at] == '}') ++at;
    blanks();
    if (const auto number = orrery::number_in<std::int64_t>(name)) return number;
    const auto found = variables_.find(name);
    if (found == variables_.end() || found->second.empty()) return std::nullopt;
    return orrery::number_in<std::int64_t>(found->second.front());
  }

  std::string_view text_;
  mutable std::size_t counted_to_ = 0, line_ = 1;  // newlines before counted_to_
  const std::string& file_;
  std::size_t at_ = 0;
  int skipped_ = 0;  // depth of branches that are not taken
  int nested_ = 0;   // defaults inside defaults
  mutable int depth_ = 0;
  std::map<std::string, Fields, std::less<>> variables_;
  ShellScript script_;
};

}  // namespace

std::string ShellWord::shown() const {
  std::string plain = text;
  std::erase(plain, unknown_mark);
  return plain;
}

ShellScript read_shell(std::string_view text, const std::string& file) {
  return ShellReader{text, file}.read();
}

std::string shell_quoted(std::string_view word) {
  const bool plain = !word.empty() && std::ranges::all_of(word, [](char c) {
    return is_name_part(c) || std::string_view{"@%+=:,./-"}.find(c) != std::string_view::npos;
  });
  if (plain) return std::string{word};
  std::string quoted = "'";
  for (const char c : word) quoted += c == '\'' ? std::string{"'\\''"} : std::string(1, c);
  return quoted + "'";
}

}  // namespace orrery::scenarios
