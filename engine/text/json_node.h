// SPDX-License-Identifier: Apache-2.0
// JsonNode: a value of a strictly read JSON file together with its pointer, so that each refusal
// says where. Members that are missing or of another type are kMalformed; members and values that
// nobody here understands are kUnsupported. Borrows the document; not for bulk arrays, which
// build a pointer only when they refuse.
#ifndef HALLMARK_ENGINE_TEXT_JSON_NODE_H_
#define HALLMARK_ENGINE_TEXT_JSON_NODE_H_

#include <cstdint>
#include <initializer_list>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

#include "engine/base/json.h"
#include "engine/base/result.h"

namespace hallmark {

class JsonNode {
 public:
  JsonNode(const Json& value, std::string file, std::string pointer = "")
      : value_(&value), file_(std::move(file)), pointer_(std::move(pointer)) {}

  const Json& value() const { return *value_; }
  Locator where() const { return {.file = file_, .pointer = pointer_}; }
  // Where a member or an item would be, whether or not it exists.
  Locator WhereOf(std::string_view key) const;
  Locator WhereOf(size_t index) const;

  bool Has(std::string_view key) const;
  Result<JsonNode> Member(std::string_view key) const;
  Result<JsonNode> Item(size_t index) const;  // within the array's size

  Status MustBeObject() const;
  Status MustBeArray() const;
  Result<std::string> Text() const;
  Result<bool> Bool() const;
  // An integer that fits; floats such as 3.0 are refused.
  Result<int64_t> Integer() const;

  // Refuses the first member whose name is not listed.
  Status OnlyMembers(std::initializer_list<std::string_view> known) const;
  // The member must exist and have this value; another one is kUnsupported.
  Status MemberIs(std::string_view key, std::string_view expected) const;
  Status FlagIs(std::string_view key, bool expected) const;
  // The member may be absent, null or an empty text; anything else is a feature not supported.
  Status MemberUnset(std::string_view key) const;

 private:
  const Json* value_;
  std::string file_;
  std::string pointer_;
};

}  // namespace hallmark

#endif  // HALLMARK_ENGINE_TEXT_JSON_NODE_H_
