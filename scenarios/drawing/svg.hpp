#pragma once
// Pieces of a picture in SVG. Coordinates are pixels from the upper left corner.

#include <array>
#include <string>

namespace orrery::scenarios {

inline constexpr std::array<const char*, 13> svg_colours{
    "#1f77b4", "#ff7f0e", "#2ca02c", "#d62728", "#9467bd", "#8c564b", "#e377c2",
    "#bcbd22", "#17becf", "#1b4f72", "#7d3c98", "#117a65", "#a04000"};

/// A panel's rectangle.
struct SvgBox {
  double left = 0, top = 0, width = 0, height = 0;

  double right() const { return left + width; }
  double bottom() const { return top + height; }
};

/// A tick distance of 1, 2 or 5 times a power of ten that gives about five ticks over `range`.
double svg_tick(double range);

/// `attributes` as SVG writes them: "stroke='#888'".
std::string svg_line(double x1, double y1, double x2, double y2, const std::string& attributes);
std::string svg_text(double x, double y, const std::string& text, const std::string& attributes);
std::string svg_rectangle(const SvgBox& box, const std::string& attributes);
std::string svg_circle(double x, double y, double radius, const std::string& attributes);

/// The document around `content`: white, sans-serif, 12 pixels.
std::string svg_document(double width, double height, const std::string& content);

}  // namespace orrery::scenarios
