#include "scenarios/topology/picture.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>

#include "scenarios/drawing/markup.hpp"

namespace orrery::scenarios {

namespace {

/// Colours of cables by level, from the nodes up; distinguishable with red-green colour blindness.
constexpr std::array<const char*, 4> level_colours{"#0072b2", "#d55e00", "#8f3f97", "#555555"};

const char* fill_of(const std::string& kind) {
  static const std::map<std::string, const char*> colours = {
      {"node", "#dbe9f6"},   {"switch", "#fde0c5"}, {"gpu", "#c8e6c9"},     {"nic", "#dbe9f6"},
      {"socket", "#e6e0f0"}, {"pcie", "#fde0c5"},   {"nvswitch", "#c8e6c9"}};
  const auto found = colours.find(kind);
  return found == colours.end() ? "#eeeeee" : found->second;
}

std::string path_of(const PictureLine& line) {
  const double across = line.x2 - line.x1, down = line.y2 - line.y1;
  const double length = std::max(1e-9, std::hypot(across, down));
  if (line.bend == 0) {
    return fmt::format("M{:.1f} {:.1f}L{:.1f} {:.1f}", line.x1, line.y1, line.x2, line.y2);
  }
  const double x = (line.x1 + line.x2) / 2 + line.bend * 2 * down / length;
  const double y = (line.y1 + line.y2) / 2 - line.bend * 2 * across / length;
  return fmt::format("M{:.1f} {:.1f}Q{:.1f} {:.1f} {:.1f} {:.1f}", line.x1, line.y1, x, y, line.x2,
                     line.y2);
}

std::string drawn(const PictureLine& line, double opacity) {
  const auto level = std::min(static_cast<std::size_t>(line.level), level_colours.size() - 1);
  return fmt::format(
      "<path class=\"l\" data-l=\"{}\" data-a=\"{}\" data-b=\"{}\" data-r=\"{}\" d=\"{}\" "
      "stroke=\"{}\" "
      "stroke-width=\"{:.2f}\" opacity=\"{:.2f}\"><title>{}, {} each way</title></path>\n",
      markup(line.name), markup(line.from), markup(line.to), markup(line.rate), path_of(line),
      level_colours[level], line.thickness, opacity, markup(line.name), markup(line.rate));
}

std::string drawn(const PictureBox& box) {
  std::string text = fmt::format(
      "<g class=\"b\" data-n=\"{}\"><rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" "
      "height=\"{:.1f}\" rx=\"{:.1f}\" fill=\"{}\"/><title>{}</title>",
      markup(box.name), box.x - box.width / 2, box.y - box.height / 2, box.width, box.height,
      std::min({4.0, box.width / 4, box.height / 4}), fill_of(box.kind), markup(box.name));
  constexpr double least = 5, most = 13;
  const double letter = 0.6 * static_cast<double>(std::max<std::size_t>(1, box.label.size()));
  const double size = std::min({most, box.height * 0.62, (box.width - 3) / letter});
  if (!box.label.empty() && size >= least) {
    text += fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" font-size=\"{:.1f}\">{}</text>", box.x,
                        box.y + size * 0.35, size, markup(box.label));
  }
  return text + "</g>\n";
}

constexpr double head_height = 64;  // above the drawing: title and caption

}  // namespace

std::string svg_of(const Picture& picture) {
  std::string text = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {:.0f} {:.0f}\" width=\"{:.0f}\" "
      "height=\"{:.0f}\" font-family=\"Helvetica, Arial, sans-serif\">\n"
      "<style>.l{{fill:none}} .b rect{{stroke:#444;stroke-width:.6}} "
      ".b text{{text-anchor:middle;fill:#222}}</style>\n"
      "<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n"
      "<text x=\"16\" y=\"26\" font-size=\"18\" font-weight=\"bold\">{}</text>\n"
      "<text x=\"16\" y=\"48\" font-size=\"13\" fill=\"#555\">{}</text>\n"
      "<g id=\"drawing\" transform=\"translate(0 {:.0f})\">\n",
      picture.width, picture.height + head_height, picture.width, picture.height + head_height,
      markup(picture.title), markup(picture.caption), head_height);
  const double many = static_cast<double>(std::max<std::size_t>(1, picture.lines.size()));
  const double opacity = std::clamp(12 / std::sqrt(many), 0.22, 0.9);
  for (const PictureLine& line : picture.lines) text += drawn(line, opacity);
  for (const PictureBox& box : picture.boxes) text += drawn(box);
  return text + "</g>\n</svg>\n";
}

std::string html_of(const Picture& picture) {
  static constexpr const char* style =
      "body{margin:0;font:14px Helvetica,Arial,sans-serif;overflow:hidden}"
      "#bar{position:fixed;left:0;right:0;top:0;background:#fffd;border-bottom:1px solid #ccc;"
      "padding:6px 12px;z-index:1}#what{font-weight:bold;margin-left:12px}"
      "svg{width:100vw;height:calc(100vh - "
      "40px);margin-top:40px;cursor:grab}.l{pointer-events:stroke}"
      ".on{opacity:1!important;stroke-width:3!important}.off{opacity:.04!important}"
      ".b{cursor:pointer}.b.on rect{stroke:#000;stroke-width:2}";
  static constexpr const char* script = R"js(
const svg=document.querySelector('svg'),drawing=document.getElementById('drawing');
const what=document.getElementById('what'),find=document.getElementById('find');
const lines=[...document.querySelectorAll('.l')],boxes=[...document.querySelectorAll('.b')];
const name=l=>l.dataset.l;
let pinned=false;
function mark(chosen){
  for(const l of lines){l.classList.toggle('on',chosen!==null&&chosen(l));
    l.classList.toggle('off',chosen!==null&&!chosen(l));}
}
for(const l of lines){
  l.addEventListener('mouseenter',()=>{what.textContent=name(l)+', '+l.dataset.r+' each way';
    if(!pinned)l.classList.add('on');});
  l.addEventListener('mouseleave',()=>{if(!pinned)l.classList.remove('on');});
}
for(const b of boxes){
  b.addEventListener('mouseenter',()=>{what.textContent=b.dataset.n;});
  b.addEventListener('click',e=>{e.stopPropagation();pinned=true;
    const n=b.dataset.n,mine=l=>l.dataset.a===n||l.dataset.b===n||l.dataset.a.startsWith(n+'/');
    mark(mine);what.textContent=n+', cables: '+lines.filter(mine).length;});
}
svg.addEventListener('click',()=>{if(moved)return;pinned=false;mark(null);find.value='';});
find.addEventListener('input',()=>{const t=find.value.trim();pinned=t!=='';
  if(t==='')return mark(null);
  const hit=l=>name(l).includes(t)||(l.dataset.b+' to '+l.dataset.a).includes(t);
  mark(hit);what.textContent='cables: '+lines.filter(hit).length;});
let view=svg.viewBox.baseVal,from=null,moved=false;
svg.addEventListener('wheel',e=>{e.preventDefault();
  const k=e.deltaY<0?.85:1/.85,r=svg.getBoundingClientRect();
  const x=view.x+(e.clientX-r.left)/r.width*view.width,y=view.y+(e.clientY-r.top)/r.height*view.height;
  view.x=x-(x-view.x)*k;view.y=y-(y-view.y)*k;view.width*=k;view.height*=k;},{passive:false});
svg.addEventListener('mousedown',e=>{from=[e.clientX,e.clientY];moved=false;});
addEventListener('mousemove',e=>{if(!from)return;const r=svg.getBoundingClientRect();
  const k=Math.max(view.width/r.width,view.height/r.height);
  if(Math.abs(e.clientX-from[0])+Math.abs(e.clientY-from[1])>3)moved=true;
  view.x-=(e.clientX-from[0])*k;view.y-=(e.clientY-from[1])*k;from=[e.clientX,e.clientY];});
addEventListener('mouseup',()=>{from=null;});
)js";
  return fmt::format(
      "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>{}</title>\n"
      "<style>{}</style></head><body>\n<div id=\"bar\"><input id=\"find\" "
      "placeholder=\"find: leaf0 to spine3\"><span id=\"what\"></span></div>\n{}<script>{}</script>"
      "\n</body></html>\n",
      markup(picture.title), style, svg_of(picture), script);
}

}  // namespace orrery::scenarios
