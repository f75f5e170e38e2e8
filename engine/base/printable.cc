// SPDX-License-Identifier: Apache-2.0
#include "engine/base/printable.h"

namespace hallmark {

std::string Printable(std::string text, size_t most) {
  if (text.size() > most) {
    const size_t more = text.size() - most;
    text.resize(most);
    text += "... (" + std::to_string(more) + " bytes more)";
  }
  for (char& c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte == 0x7F) c = '?';
  }
  return text;
}

}  // namespace hallmark
