#pragma once
// A picture of a network: named boxes and cables, as SVG (a tooltip on each cable shows its name
// and rate) and as one self-contained HTML page with hover names, click to highlight a box's
// cables, zoom by wheel, pan by dragging, and search by name.

#include <string>
#include <vector>

namespace orrery::scenarios {

struct PictureBox {
  std::string name;   // "leaf3": cables and the search refer to it
  std::string label;  // written in the box if it fits
  std::string kind;   // "node", "switch", "gpu", "nic", "socket": its colour
  double x = 0, y = 0, width = 0, height = 0;  // x, y: the centre
};

struct PictureLine {
  std::string name;      // "leaf0 to spine3"
  std::string from, to;  // boxes by name
  std::string rate;      // "50 GB/s"
  int level = 0;         // of the fabric, from the nodes up: its colour
  double x1 = 0, y1 = 0, x2 = 0, y2 = 0;
  double bend = 0;  // offset of its midpoint from the straight line
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
