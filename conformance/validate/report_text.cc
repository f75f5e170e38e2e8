// SPDX-License-Identifier: Apache-2.0
#include "conformance/validate/report_text.h"

#include <fmt/format.h>
#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <vector>

namespace hallmark {
namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";  // U+FFFD
constexpr size_t kFolded = 12;                             // rows; a longer table is folded away

// One step of a JSON pointer.
std::string Below(const std::string& pointer, std::string_view key) {
  std::string path = pointer + "/";
  for (const char c : key) {
    if (c == '~') {
      path += "~0";
    } else if (c == '/') {
      path += "~1";
    } else {
      path += c;
    }
  }
  return path;
}

// U+202A..U+202E and U+2066..U+2069 at the beginning of `text`.
bool TurnsDirection(std::string_view text) {
  if (!text.starts_with("\xE2\x80") && !text.starts_with("\xE2\x81")) return false;
  if (text.size() < 3) return false;
  const auto low = static_cast<unsigned char>(text[2]);
  return text[1] == '\x80' ? low >= 0xAA && low <= 0xAE : low >= 0xA6 && low <= 0xA9;
}

std::string Grouped(const std::string& digits) {
  std::string text;
  for (size_t i = 0; i < digits.size(); ++i) {
    const size_t left = digits.size() - i;
    if (i > 0 && left % 3 == 0 && digits[i - 1] != '-') text += "\xE2\x80\xAF";  // U+202F
    text += digits[i];
  }
  return text;
}

bool IsPlain(const Json& value) {
  return value.is_primitive() ||
         (value.is_array() &&
          std::ranges::all_of(value, [](const Json& item) { return item.is_primitive(); }));
}

bool HoldsObjects(const Json& value) {
  return !value.empty() && value.is_structured() &&
         std::ranges::all_of(value, [](const Json& item) { return item.is_object(); });
}

// Objects of plain values all through: an object of such is a table, else a list of sections.
bool IsTable(const Json& value) {
  if (!HoldsObjects(value)) return false;
  if (value.is_array()) return true;
  const Json& first = value.front();
  return value.size() > 1 && std::ranges::all_of(value, [&first](const Json& item) {
           if (item.size() != first.size()) return false;
           for (const auto& [key, cell] : item.items()) {
             if (!first.contains(key) || !IsPlain(cell)) return false;
           }
           return true;
         });
}

struct Cell {
  std::string key;  // "expected least" for a member of a member
  std::string pointer;
  const Json* value;
};

void Flatten(const Json& row, const std::string& name, const std::string& pointer,
             std::vector<Cell>* cells) {
  for (const auto& [key, value] : row.items()) {
    const std::string full = name.empty() ? key : name + " " + key;
    const std::string below = Below(pointer, key);
    if (value.is_object()) {
      Flatten(value, full, below, cells);
    } else {
      cells->push_back({full, below, &value});
    }
  }
}

std::string Fact(std::string_view tag, const std::string& pointer, const Json& value) {
  return fmt::format("<{0}{1} data-fact=\"{2}\">{3}</{0}>", tag,
                     value.is_number() ? " class=\"n\"" : "", EscapeHtml(pointer),
                     HtmlOfValue(value));
}

}  // namespace

std::string EscapeHtml(std::string_view text) {
  std::string html;
  for (size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    if (byte == '&') {
      html += "&amp;";
    } else if (byte == '<') {
      html += "&lt;";
    } else if (byte == '>') {
      html += "&gt;";
    } else if (byte == '"') {
      html += "&quot;";
    } else if (byte == '\'') {
      html += "&#39;";
    } else if (byte < 0x20 || byte == 0x7F) {
      html += kReplacement;
    } else if (TurnsDirection(text.substr(i))) {
      html += kReplacement;
      i += 2;
    } else {
      html += text[i];
    }
  }
  return html;
}

std::string HtmlOfValue(const Json& value) {
  if (value.is_string()) return EscapeHtml(value.get_ref<const std::string&>());
  if (value.is_number_integer()) return Grouped(value.dump());
  if (value.is_number()) return fmt::format("{:.4g}", value.get<double>());
  if (value.is_boolean()) return value.get<bool>() ? "yes" : "no";
  if (!value.is_array()) return "\xE2\x80\x94";  // an em dash
  std::string list;
  for (const Json& item : value)
    list +=
        (list.empty() ? "" : ", ") + (item.is_number_integer() ? item.dump() : HtmlOfValue(item));
  return list.empty() ? "none" : list;
}

std::string HtmlOfKey(std::string_view key) {
  std::string text = EscapeHtml(key);
  std::ranges::replace(text, '_', ' ');
  return text;
}

std::string HtmlOfTable(const Json& rows, const std::string& pointer) {
  std::vector<std::string> columns;
  std::vector<std::vector<Cell>> table;
  std::vector<std::string> names;
  size_t index = 0;
  for (const auto& [key, row] : rows.items()) {
    const std::string name = rows.is_array() ? std::to_string(index) : key;
    Flatten(row, "", Below(pointer, name), &table.emplace_back());
    names.push_back(name);
    ++index;
    for (const Cell& cell : table.back()) {
      if (std::ranges::find(columns, cell.key) == columns.end()) columns.push_back(cell.key);
    }
  }
  // What a row is called comes first.
  for (const char* name : {"name", "form", "tensor", "part", "case"}) {
    const auto found = std::ranges::find(columns, name);
    if (found != columns.end()) std::rotate(columns.begin(), found, found + 1);
  }
  std::string html = "<div class=\"scroll\" tabindex=\"0\"><table><thead><tr>";
  if (rows.is_object()) html += "<th scope=\"col\"></th>";
  for (const std::string& column : columns) {
    html += "<th scope=\"col\">" + HtmlOfKey(column) + "</th>";
  }
  html += "</tr></thead><tbody>\n";
  for (size_t i = 0; i < table.size(); ++i) {
    html += "<tr>";
    if (rows.is_object()) html += "<th scope=\"row\">" + EscapeHtml(names[i]) + "</th>";
    for (const std::string& column : columns) {
      const auto cell = std::ranges::find(table[i], column, &Cell::key);
      html += cell == table[i].end() ? "<td></td>" : Fact("td", cell->pointer, *cell->value);
    }
    html += "</tr>\n";
  }
  return html + "</tbody></table></div>\n";
}

std::string HtmlOfFacts(const Json& facts, const std::string& pointer) {
  std::string list;
  std::string rest;
  for (const auto& [key, value] : facts.items()) {
    const std::string below = Below(pointer, key);
    if (IsPlain(value)) {
      list += "<div><dt>" + HtmlOfKey(key) + "</dt>" + Fact("dd", below, value) + "</div>\n";
      continue;
    }
    const std::string body = IsTable(value) ? HtmlOfTable(value, below) : HtmlOfFacts(value, below);
    if (value.size() > kFolded) {
      rest += fmt::format("<details><summary>{} ({})</summary>\n{}</details>\n", HtmlOfKey(key),
                          value.size(), body);
    } else {
      rest += "<section><h4>" + HtmlOfKey(key) + "</h4>\n" + body + "</section>\n";
    }
  }
  return (list.empty() ? "" : "<dl>\n" + list + "</dl>\n") + rest;
}

}  // namespace hallmark
