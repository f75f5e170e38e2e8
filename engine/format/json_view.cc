// SPDX-License-Identifier: Apache-2.0
#include "engine/format/json_view.h"

#include <nlohmann/json.hpp>

namespace hallmark {
namespace {

// nullopt when the value is no integer of 64 bits.
std::optional<int64_t> AsInt(const Json& value) {
  if (!value.is_number_integer()) return std::nullopt;
  if (value.is_number_unsigned() && value.get<uint64_t>() > uint64_t{INT64_MAX}) return INT64_MAX;
  return value.get<int64_t>();
}

tl::unexpected<Error> OutOfRange(int64_t value, int64_t low, int64_t high, Locator where) {
  return Fail(Code::kOutOfRange,
              "found " + std::to_string(value) + ", expected " + std::to_string(low) + " to " +
                  std::to_string(high),
              std::move(where));
}

}  // namespace

std::string PointerToken(std::string_view key) {
  std::string token = "/";
  for (const char c : key) {
    if (c == '~') {
      token += "~0";
    } else if (c == '/') {
      token += "~1";
    } else {
      token += c;
    }
  }
  return token;
}

Result<JsonView> JsonView::Of(const Json& value, std::string file, std::string pointer) {
  if (!value.is_object()) {
    return Fail(Code::kMalformed,
                std::string("found ") + value.type_name() + ", expected an object",
                {.file = std::move(file), .pointer = std::move(pointer)});
  }
  return JsonView(&value, std::move(file), std::move(pointer));
}

const Json* JsonView::Raw(std::string_view key) const {
  const auto found = value_->find(key);
  return found == value_->end() || found->is_null() ? nullptr : &*found;
}

Locator JsonView::At(std::string_view key) const {
  return {.file = file_, .pointer = key.empty() ? pointer_ : pointer_ + PointerToken(key)};
}

tl::unexpected<Error> JsonView::WrongType(std::string_view key, const char* expected) const {
  return Fail(Code::kMalformed,
              std::string("found ") + Raw(key)->type_name() + ", expected " + expected, At(key));
}

Result<std::optional<int64_t>> JsonView::Int(std::string_view key, int64_t low,
                                             int64_t high) const {
  const Json* value = Raw(key);
  if (value == nullptr) return std::nullopt;
  const std::optional<int64_t> number = AsInt(*value);
  if (!number) return WrongType(key, "an integer");
  if (*number < low || *number > high) return OutOfRange(*number, low, high, At(key));
  return number;
}

Result<int64_t> JsonView::NeedInt(std::string_view key, int64_t low, int64_t high) const {
  const std::optional<int64_t> number = TRY(Int(key, low, high));
  if (!number) return Fail(Code::kMalformed, "the key is missing", At(key));
  return *number;
}

Result<std::optional<double>> JsonView::Number(std::string_view key) const {
  const Json* value = Raw(key);
  if (value == nullptr) return std::nullopt;
  if (!value->is_number()) return WrongType(key, "a number");
  return value->get<double>();
}

Result<std::optional<bool>> JsonView::Bool(std::string_view key) const {
  const Json* value = Raw(key);
  if (value == nullptr) return std::nullopt;
  if (!value->is_boolean()) return WrongType(key, "true or false");
  return value->get<bool>();
}

Result<std::optional<std::string>> JsonView::Text(std::string_view key) const {
  const Json* value = Raw(key);
  if (value == nullptr) return std::nullopt;
  if (!value->is_string()) return WrongType(key, "a string");
  return value->get<std::string>();
}

Result<std::optional<JsonView>> JsonView::Object(std::string_view key) const {
  const Json* value = Raw(key);
  if (value == nullptr) return std::nullopt;
  return TRY(Of(*value, file_, pointer_ + PointerToken(key)));
}

Result<std::optional<std::vector<int64_t>>> JsonView::Ints(std::string_view key, int64_t low,
                                                           int64_t high) const {
  const Json* value = Raw(key);
  if (value == nullptr) return std::nullopt;
  if (!value->is_array()) return WrongType(key, "an array of integers");
  std::vector<int64_t> numbers;
  for (size_t i = 0; i < value->size(); ++i) {
    Locator where = At(key);
    where.pointer += "/" + std::to_string(i);
    const std::optional<int64_t> number = AsInt((*value)[i]);
    if (!number) {
      return Fail(Code::kMalformed,
                  std::string("found ") + (*value)[i].type_name() + ", expected an integer",
                  std::move(where));
    }
    if (*number < low || *number > high) return OutOfRange(*number, low, high, std::move(where));
    numbers.push_back(*number);
  }
  return numbers;
}

std::vector<std::string> JsonView::Keys() const {
  std::vector<std::string> keys;
  for (const auto& item : value_->items()) keys.push_back(item.key());
  return keys;
}

}  // namespace hallmark
