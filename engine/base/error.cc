// SPDX-License-Identifier: Apache-2.0
#include "engine/base/error.h"

namespace hallmark {

std::string_view CodeName(Code code) {
  switch (code) {
    case Code::kNotFound:
      return "not_found";
    case Code::kIo:
      return "io";
    case Code::kMalformed:
      return "malformed";
    case Code::kUnsupported:
      return "unsupported";
    case Code::kMismatch:
      return "mismatch";
    case Code::kOutOfRange:
      return "out_of_range";
    case Code::kResource:
      return "resource";
    case Code::kDevice:
      return "device";
    case Code::kInternal:
      return "internal";
  }
  return "internal";
}

std::string Locator::ToString() const {
  std::string text;
  auto add = [&text](std::string_view label, std::string_view value) {
    if (value.empty()) return;
    if (!text.empty()) text += ", ";
    text += label;
    text += value;
  };
  add("", file);
  if (byte) add("byte ", std::to_string(*byte));
  add("at ", pointer);
  add("tensor ", tensor);
  add("launcher ", launcher);
  add("flag ", flag);
  return text;
}

std::string Error::ToString() const {
  std::string text(CodeName(code));
  text += ": ";
  text += message;
  const std::string place = where.ToString();
  if (!place.empty()) text += " (" + place + ")";
  return text;
}

}  // namespace hallmark
