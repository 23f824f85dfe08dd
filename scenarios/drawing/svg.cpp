#include "scenarios/drawing/svg.hpp"

#include <fmt/format.h>

#include <cmath>

#include "scenarios/drawing/markup.hpp"

namespace orrery::scenarios {

double svg_tick(double range) {
  const double power = std::pow(10, std::floor(std::log10(range / 5)));
  for (const double factor : {1, 2, 5}) {
    if (factor * power * 5 >= range * 0.999) return factor * power;
  }
  return 10 * power;
}

std::string svg_line(double x1, double y1, double x2, double y2, const std::string& attributes) {
  return fmt::format("<line x1='{:.1f}' y1='{:.1f}' x2='{:.1f}' y2='{:.1f}' {}/>\n", x1, y1, x2, y2,
                     attributes);
}

std::string svg_text(double x, double y, const std::string& text, const std::string& attributes) {
  return fmt::format("<text x='{:.1f}' y='{:.1f}' {}>{}</text>\n", x, y, attributes, markup(text));
}

std::string svg_rectangle(const SvgBox& box, const std::string& attributes) {
  return fmt::format("<rect x='{:.1f}' y='{:.1f}' width='{:.1f}' height='{:.1f}' {}/>\n", box.left,
                     box.top, box.width, box.height, attributes);
}

std::string svg_circle(double x, double y, double radius, const std::string& attributes) {
  return fmt::format("<circle cx='{:.1f}' cy='{:.1f}' r='{:g}' {}/>\n", x, y, radius, attributes);
}

std::string svg_document(double width, double height, const std::string& content) {
  return fmt::format(
             "<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 {0} {1}' "
             "font-family='sans-serif' font-size='12' fill='#222'>\n"
             "<rect width='{0}' height='{1}' fill='white'/>\n",
             width, height) +
         content + "</svg>\n";
}

}  // namespace orrery::scenarios
