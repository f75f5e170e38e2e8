// SPDX-License-Identifier: Apache-2.0
// JsonView: a JSON object with its file and pointer, so that every typed read can say where it
// failed. Null counts as absent. Booleans are not integers, 6.0 is not an integer.
#ifndef HALLMARK_ENGINE_FORMAT_JSON_VIEW_H_
#define HALLMARK_ENGINE_FORMAT_JSON_VIEW_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/json.h"
#include "engine/base/result.h"

namespace hallmark {

class JsonView {
 public:
  // kMalformed unless `value` is an object. `value` must outlive the view.
  static Result<JsonView> Of(const Json& value, std::string file, std::string pointer = "");

  bool Has(std::string_view key) const { return Raw(key) != nullptr; }
  // The value itself; null when absent or JSON null.
  const Json* Raw(std::string_view key) const;

  // Absent keys give nullopt. A wrong type is kMalformed, a value outside [low, high] kOutOfRange.
  Result<std::optional<int64_t>> Int(std::string_view key, int64_t low, int64_t high) const;
  Result<std::optional<double>> Number(std::string_view key) const;
  Result<std::optional<bool>> Bool(std::string_view key) const;
  Result<std::optional<std::string>> Text(std::string_view key) const;
  Result<std::optional<JsonView>> Object(std::string_view key) const;
  // An array of integers, each in [low, high].
  Result<std::optional<std::vector<int64_t>>> Ints(std::string_view key, int64_t low,
                                                   int64_t high) const;
  // As Int; kMalformed when absent.
  Result<int64_t> NeedInt(std::string_view key, int64_t low, int64_t high) const;

  // The keys, in the order of their bytes.
  std::vector<std::string> Keys() const;
  const std::string& file() const { return file_; }
  // The place of a key, or of the object itself for an empty one.
  Locator At(std::string_view key = {}) const;

 private:
  JsonView(const Json* value, std::string file, std::string pointer)
      : value_(value), file_(std::move(file)), pointer_(std::move(pointer)) {}
  tl::unexpected<Error> WrongType(std::string_view key, const char* expected) const;

  const Json* value_;
  std::string file_;
  std::string pointer_;
};

// One reference token of a JSON pointer (RFC 6901), with its slash.
std::string PointerToken(std::string_view key);

}  // namespace hallmark

#endif  // HALLMARK_ENGINE_FORMAT_JSON_VIEW_H_
