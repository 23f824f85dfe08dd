#pragma once
// A picture of a network: boxes and cables with names, as SVG (a hint at each cable says its name
// and rate) and as one HTML page that needs nothing else: what the pointer is on is named, a click
// on a box shows its cables, the wheel zooms, dragging moves, a field finds by name.

#include <optional>
#include <string>
#include <vector>

namespace orrery::scenarios {

struct PictureBox {
  std::string name;   // "leaf3": what cables and the field find it by
  std::string label;  // inside; shown where it fits
  std::string kind;   // "node", "switch", "gpu", "nic", "socket": its colour
  double x = 0, y = 0, width = 0, height = 0;  // of its middle
};

struct PictureLine {
  std::string name;      // "leaf0 to spine3"
  std::string from, to;  // boxes by name
  std::string rate;      // "50 GB/s"
  int level = 0;         // of the fabric, from the nodes up: its colour
  double x1 = 0, y1 = 0, x2 = 0, y2 = 0;
  double bend = 0;  // how far its middle is off the straight line
  double thickness = 1;
};

struct Picture {
  std::string title;
  std::string caption;
  double width = 0, height = 0;
  std::vector<PictureBox> boxes;
  std::vector<PictureLine> lines;
};

std::string svg_of(const Picture& picture);
std::string html_of(const Picture& picture);

}  // namespace orrery::scenarios
