#pragma once
// Text of a user's files in pictures (SVG), HTML and Markdown: it is shown as it is, and never read
// as markup.

#include <string>
#include <string_view>

namespace orrery::scenarios {

/// Text or an attribute's value in SVG and HTML. Characters that XML does not allow become U+FFFD.
/// Source  Extensible Markup Language 1.0 (fifth edition), production 2 and section 2.4
std::string markup(std::string_view text);

/// Text in a cell or a sentence of Markdown: one line, no cell's end, no link and no code.
/// Source  CommonMark 0.31.2, section 2.4 (backslash escapes)
std::string markdown(std::string_view text);

/// Text in a span of code in Markdown: as it is, but nothing ends the span.
std::string markdown_code(std::string_view text);

/// A page of Markdown, written whole: nothing in it is HTML.
/// Source  CommonMark 0.31.2, section 2.5 (entities)
std::string markdown_page(std::string_view text);

}  // namespace orrery::scenarios
