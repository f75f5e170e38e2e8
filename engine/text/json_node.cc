// SPDX-License-Identifier: Apache-2.0
#include "engine/text/json_node.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "engine/base/check.h"

namespace hallmark {
namespace {

// A value in a few words: structures are named, not written out, since they may be large.
std::string Brief(const Json& value) {
  constexpr size_t kLongest = 60;
  if (value.is_object()) return "an object";
  if (value.is_array()) return "an array";
  // ASCII only, so that cutting never splits a character.
  std::string text = value.dump(-1, ' ', true, Json::error_handler_t::replace);
  if (text.size() > kLongest) text = text.substr(0, kLongest) + "...";
  return text;
}

// RFC 6901: ~ and / have escapes.
std::string Escape(std::string_view key) {
  std::string text;
  for (const char c : key) {
    if (c == '~' || c == '/') {
      text += c == '~' ? "~0" : "~1";
    } else {
      text += c;
    }
  }
  return text;
}

}  // namespace

Locator JsonNode::WhereOf(std::string_view key) const {
  return {.file = file_, .pointer = pointer_ + "/" + Escape(key)};
}

Locator JsonNode::WhereOf(size_t index) const {
  return {.file = file_, .pointer = pointer_ + "/" + std::to_string(index)};
}

bool JsonNode::Has(std::string_view key) const {
  return value_->is_object() && value_->contains(key);
}

Result<JsonNode> JsonNode::Member(std::string_view key) const {
  TRY(MustBeObject());
  const auto found = value_->find(key);
  const Locator where = WhereOf(key);
  if (found == value_->end()) {
    return Fail(Code::kMalformed, "the member \"" + std::string(key) + "\" is missing", where);
  }
  return JsonNode(*found, file_, where.pointer);
}

Result<JsonNode> JsonNode::Item(size_t index) const {
  TRY(MustBeArray());
  CHECK(index < value_->size());
  return JsonNode((*value_)[index], file_, WhereOf(index).pointer);
}

Status JsonNode::MustBeObject() const {
  if (value_->is_object()) return {};
  return Fail(Code::kMalformed, "found " + Brief(*value_) + ", expected an object", where());
}

Status JsonNode::MustBeArray() const {
  if (value_->is_array()) return {};
  return Fail(Code::kMalformed, "found " + Brief(*value_) + ", expected an array", where());
}

Result<std::string> JsonNode::Text() const {
  if (const auto* text = value_->get_ptr<const std::string*>()) return *text;
  return Fail(Code::kMalformed, "found " + Brief(*value_) + ", expected a string", where());
}

Result<bool> JsonNode::Bool() const {
  if (value_->is_boolean()) return value_->get<bool>();
  return Fail(Code::kMalformed, "found " + Brief(*value_) + ", expected true or false", where());
}

Result<int64_t> JsonNode::Integer() const {
  if (value_->is_number_unsigned() && value_->get<uint64_t>() <= uint64_t{INT64_MAX}) {
    return static_cast<int64_t>(value_->get<uint64_t>());
  }
  // The parser keeps non-negative integers unsigned, so this branch is the negative ones.
  if (value_->is_number_integer() && !value_->is_number_unsigned()) return value_->get<int64_t>();
  return Fail(Code::kMalformed, "found " + Brief(*value_) + ", expected an integer", where());
}

Status JsonNode::OnlyMembers(std::initializer_list<std::string_view> known) const {
  TRY(MustBeObject());
  for (const auto& [key, value] : value_->items()) {
    if (std::find(known.begin(), known.end(), key) == known.end()) {
      return Fail(Code::kUnsupported, "the member \"" + key + "\" is not known", WhereOf(key));
    }
  }
  return {};
}

Status JsonNode::MemberIs(std::string_view key, std::string_view expected) const {
  const JsonNode member = TRY(Member(key));
  const std::string found = TRY(member.Text());
  if (found == expected) return {};
  return Fail(
      Code::kUnsupported,
      "found " + Brief(member.value()) + ", only \"" + std::string(expected) + "\" is supported",
      member.where());
}

Status JsonNode::FlagIs(std::string_view key, bool expected) const {
  const JsonNode member = TRY(Member(key));
  if (TRY(member.Bool()) == expected) return {};
  return Fail(Code::kUnsupported,
              std::string("only ") + (expected ? "true" : "false") + " is supported",
              member.where());
}

Status JsonNode::MemberUnset(std::string_view key) const {
  TRY(MustBeObject());
  const auto found = value_->find(key);
  if (found == value_->end() || found->is_null() || *found == "") return {};
  return Fail(Code::kUnsupported, "found " + Brief(*found) + ", only null is supported",
              WhereOf(key));
}

}  // namespace hallmark
