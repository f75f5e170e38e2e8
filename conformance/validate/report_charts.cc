// SPDX-License-Identifier: Apache-2.0
#include "conformance/validate/report_charts.h"

#include <fmt/format.h>
#include <algorithm>
#include <cctype>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <vector>

#include "conformance/validate/report_text.h"

namespace hallmark {
namespace {

// Of the drawing, in its own units; the page scales it.
constexpr double kWidth = 480;
constexpr double kHeight = 250;
constexpr double kLeft = 58;
constexpr double kRight = 472;
constexpr double kTop = 12;
constexpr double kBottom = 200;

struct Axis {
  double low = 0;
  double high = 1;
  double At(double value) const {
    return kBottom - (value - low) / (high - low) * (kBottom - kTop);
  }
};

std::string Text(double x, double y, const char* anchor, const std::string& text) {
  return fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\">{}</text>\n", x, y, anchor,
                     EscapeHtml(text));
}

std::string GridLine(double y, const std::string& label) {
  return fmt::format("<line class=\"grid\" x1=\"{}\" y1=\"{:.1f}\" x2=\"{}\" y2=\"{:.1f}\"/>\n",
                     kLeft, y, kRight, y) +
         Text(kLeft - 6, y + 4, "end", label);
}

// The places of the horizontal axis; not every one of many is named.
struct Slots {
  std::vector<std::string> names;

  double width() const { return (kRight - kLeft) / static_cast<double>(names.size()); }
  double Middle(size_t slot) const { return kLeft + width() * (static_cast<double>(slot) + 0.5); }
  std::string Labels() const {
    size_t every = 1;
    for (const size_t step : {1, 2, 4, 8, 16, 32, 64, 128}) {
      every = step;
      if (names.size() <= 16 * step) break;
    }
    std::string html;
    for (size_t i = 0; i < names.size(); ++i) {
      const bool number = std::isdigit(static_cast<unsigned char>(names[i][0])) != 0;
      if (number && i % every == 0) html += Text(Middle(i), kBottom + 17, "middle", names[i]);
      if (number) continue;
      if (width() > 36) {
        html += Text(Middle(i), kBottom + 17, "middle", names[i]);
      } else {
        html += Text(kRight, kBottom + 34, "end", names[i]);
      }
    }
    return html;
  }
};

std::string Frame(const std::string& id, const std::string& title, const std::string& description,
                  const std::string& vertical, const std::string& body) {
  return fmt::format(
             "<svg viewBox=\"0 0 {0} {1}\" role=\"img\" aria-labelledby=\"{2}-t {2}-d\" "
             "id=\"{2}\">\n<title id=\"{2}-t\">{3}</title>\n<desc id=\"{2}-d\">{4}</desc>\n",
             kWidth, kHeight, id, EscapeHtml(title), EscapeHtml(description)) +
         body +
         fmt::format("<line class=\"axis\" x1=\"{0}\" y1=\"{1}\" x2=\"{2}\" y2=\"{1}\"/>\n", kLeft,
                     kBottom, kRight) +
         Text((kLeft + kRight) / 2, kHeight - 8, "middle", "layer") +
         fmt::format(
             "<text class=\"name\" transform=\"translate(14 {:.1f}) rotate(-90)\" "
             "text-anchor=\"middle\">{}</text>\n",
             (kTop + kBottom) / 2, EscapeHtml(vertical)) +
         "</svg>\n";
}

// "12" of "model.layers.12.mlp.up_proj", "head" of what is in no layer.
std::string LayerOf(const std::string& tensor) {
  constexpr std::string_view kLayers = "layers.";
  const size_t at = tensor.find(kLayers);
  if (at == std::string::npos) return "head";
  const size_t begin = at + kLayers.size();
  const size_t end = tensor.find('.', begin);
  const std::string layer = tensor.substr(begin, end - begin);
  const bool digits = !layer.empty() && std::ranges::all_of(layer, [](unsigned char c) {
    return std::isdigit(c) != 0;
  });
  return digits ? layer : "head";
}

std::optional<double> Positive(const Json& value) {
  if (!value.is_number() || !(value.get<double>() > 0)) return std::nullopt;
  return std::log10(value.get<double>());
}

}  // namespace

std::string BitsChart(const Json& layers) {
  if (layers.empty()) return "";
  Slots slots;
  double most = 0;
  double least = INFINITY;
  for (const Json& layer : layers) {
    slots.names.push_back(layer.at("part").get<std::string>());
    most = std::max(most, layer.at("bits").get<double>());
    least = std::min(least, layer.at("bits").get<double>());
  }
  const double tick = most > 8 ? 4 : most > 4 ? 2 : 1;
  const Axis axis{0, std::ceil(most / tick) * tick};
  std::string body;
  for (double bits = 0; bits <= axis.high; bits += tick) {
    body += GridLine(axis.At(bits), fmt::format("{:g}", bits));
  }
  const double width = std::min(26.0, slots.width() * 0.72);
  for (size_t i = 0; i < slots.names.size(); ++i) {
    const double bits = layers[i].at("bits").get<double>();
    body += fmt::format(
        "<rect class=\"bar\" x=\"{:.2f}\" y=\"{:.2f}\" width=\"{:.2f}\" height=\"{:.2f}\">"
        "<title>{}: {:.4g} bits</title></rect>\n",
        slots.Middle(i) - width / 2, axis.At(bits), width, kBottom - axis.At(bits),
        EscapeHtml(slots.names[i]), bits);
  }
  return Frame("bits-chart", "Bits of each layer",
               fmt::format("Bars, one for each of {} parts of the model: mean bits of a weight, "
                           "from {:.4g} to {:.4g}. The table below has the values.",
                           slots.names.size(), least, most),
               "bits of a weight", body + slots.Labels());
}

std::string ErrorChart(const Json& linears) {
  struct Mark {
    double error;  // log10
    bool in_band;
    std::string tensor;
  };
  struct Layer {
    double least = INFINITY;
    double most = -INFINITY;
    std::vector<Mark> marks;
  };
  std::vector<Layer> layers;
  Slots slots;
  double low = INFINITY;
  double high = -INFINITY;
  size_t outside = 0;
  size_t drawn = 0;
  for (const Json& linear : linears) {
    const auto tensor = linear.at("tensor").get<std::string>();
    const auto error = Positive(linear.at("nmse"));
    const auto least = Positive(linear.at("expected").at("least"));
    const auto most = Positive(linear.at("expected").at("most"));
    if (!error || !least || !most) continue;
    const std::string name = LayerOf(tensor);
    const auto found = std::ranges::find(slots.names, name);
    const auto slot = static_cast<size_t>(found - slots.names.begin());
    if (found == slots.names.end()) {
      slots.names.push_back(name);
      layers.emplace_back();
    }
    const bool in_band = linear.at("in_band").get<bool>();
    layers[slot].marks.push_back({*error, in_band, tensor});
    layers[slot].least = std::min(layers[slot].least, *least);
    layers[slot].most = std::max(layers[slot].most, *most);
    low = std::min({low, *error, *least});
    high = std::max({high, *error, *most});
    outside += in_band ? 0 : 1;
    ++drawn;
  }
  if (drawn == 0) return "";
  const Axis axis{std::floor(low), std::max(std::ceil(high), std::floor(low) + 1)};
  std::string body;
  const double tick = std::ceil((axis.high - axis.low) / 8);
  for (double power = axis.low; power <= axis.high; power += tick) {
    body += GridLine(axis.At(power), fmt::format("{:g}", std::pow(10.0, power)));
  }
  const double width = slots.width() * 0.8;
  for (size_t i = 0; i < layers.size(); ++i) {
    body += fmt::format(
        "<rect class=\"band\" x=\"{:.2f}\" y=\"{:.2f}\" width=\"{:.2f}\" height=\"{:.2f}\"/>\n",
        slots.Middle(i) - width / 2, axis.At(layers[i].most), width,
        axis.At(layers[i].least) - axis.At(layers[i].most));
    for (size_t m = 0; m < layers[i].marks.size(); ++m) {
      const Mark& mark = layers[i].marks[m];
      // Side by side, so that equals are seen.
      const double x =
          slots.Middle(i) +
          width * 0.8 *
              ((static_cast<double>(m) + 0.5) / static_cast<double>(layers[i].marks.size()) - 0.5);
      const double y = axis.At(mark.error);
      const std::string title = fmt::format("<title>{}: {:.4g}</title>", EscapeHtml(mark.tensor),
                                            std::pow(10.0, mark.error));
      body +=
          mark.in_band
              ? fmt::format(
                    "<circle class=\"mark\" cx=\"{:.2f}\" cy=\"{:.2f}\" r=\"2.2\">{}"
                    "</circle>\n",
                    x, y, title)
              : fmt::format("<path class=\"out\" d=\"M{:.2f} {:.2f}l7 7m0 -7l-7 7\">{}</path>\n",
                            x - 3.5, y - 3.5, title);
    }
  }
  return Frame(
      "error-chart", "Error of each layer's linears against the source model",
      fmt::format("Normalized mean square error of {} linears in {} parts of the model, on a "
                  "logarithmic axis, over the band that their widths are expected to reach; {} "
                  "outside their own band, drawn as crosses. The table below has the values.",
                  drawn, slots.names.size(), outside),
      "NMSE", body + slots.Labels());
}

}  // namespace hallmark
