#include "scenarios/drawing/markup.hpp"

#include <catch2/catch.hpp>

#include "scenarios/drawing/svg.hpp"

namespace orrery::scenarios {

TEST_CASE("Text in a picture is no markup, whatever it holds") {
  CHECK(markup("a<b> & 'c' \"d\" ]]>") == "a&lt;b&gt; &amp; &#39;c&#39; &quot;d&quot; ]]&gt;");
  // XML has no way to write ESC, NUL, U+FFFE or a byte that is not UTF-8.
  CHECK(markup(std::string{"\x1b\0\xEF\xBF\xBE\xFF", 6}) ==
        "\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD");
  CHECK(markup("1\xC3\x97") == "1\xC3\x97");
  CHECK(svg_text(0, 0, "]]>", "") == "<text x='0.0' y='0.0' >]]&gt;</text>\n");
}

TEST_CASE("Text in a page is one cell, no link, no code and no HTML") {
  CHECK(markdown("a | b\n# c") == "a \\| b\\\\u000a# c");
  CHECK(markdown("![x](http://y) `z` \\") == "!\\[x\\](http://y) \\`z\\` \\\\");
  CHECK(markdown_code("a`b\n") == "a'b\\u000a");
  CHECK(markdown_page("# A\n\n<img onerror=x> &lt;\n") == "# A\n\n&lt;img onerror=x> &amp;lt;\n");
}

}  // namespace orrery::scenarios
