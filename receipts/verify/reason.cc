// SPDX-License-Identifier: Apache-2.0
#include "receipts/verify/reason.h"

#include <nlohmann/json.hpp>
#include <utility>

namespace hallmark::verify {

void Findings::Add(std::string code, std::string pointer, std::string expected, std::string found) {
  ++total_;
  if (reasons_.size() >= kMost) return;
  reasons_.push_back({std::move(code), std::move(pointer), std::move(expected), std::move(found)});
}

void Findings::AddAll(std::vector<Reason> reasons) {
  for (Reason& reason : reasons) {
    Add(std::move(reason.code), std::move(reason.pointer), std::move(reason.expected),
        std::move(reason.found));
  }
}

void Findings::Equal(std::string_view code, std::string_view pointer, std::string_view expected,
                     std::string_view found) {
  if (expected == found) return;
  Add(std::string(code), std::string(pointer), ShownText(expected), ShownText(found));
}

std::string ShownText(std::string_view text, size_t most) {
  std::string shown(text.substr(0, most));
  for (char& c : shown) {
    if (c < ' ' || c > '~') c = '?';
  }
  if (text.size() > most) shown += "...";
  return shown;
}

std::string Shown(const nlohmann::json& value) {
  if (value.is_array()) return "a list of " + std::to_string(value.size());
  if (value.is_object()) return "an object of " + std::to_string(value.size()) + " members";
  if (value.is_string()) return ShownText("\"" + value.get_ref<const std::string&>() + "\"");
  return ShownText(value.dump());
}

std::string Below(std::string_view pointer, std::string_view member) {
  std::string path(pointer);
  path += '/';
  for (const char c : member) {
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

std::string Below(std::string_view pointer, size_t index) {
  return std::string(pointer) + "/" + std::to_string(index);
}

}  // namespace hallmark::verify
