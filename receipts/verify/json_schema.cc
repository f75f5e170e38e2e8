// SPDX-License-Identifier: Apache-2.0
#include "receipts/verify/json_schema.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "engine/base/json.h"

namespace hallmark::verify {
namespace {

const std::set<std::string>& Keywords() {
  static const std::set<std::string> words = {"$id",           "$schema",    "additionalProperties",
                                              "description",   "enum",       "items",
                                              "maxItems",      "maxLength",  "maximum",
                                              "minItems",      "minLength",  "minProperties",
                                              "minimum",       "pattern",    "properties",
                                              "propertyNames", "required",   "title",
                                              "type",          "uniqueItems"};
  return words;
}

bool IsOfType(const Json& value, const std::string& type) {
  if (type == "object") return value.is_object();
  if (type == "array") return value.is_array();
  if (type == "string") return value.is_string();
  if (type == "boolean") return value.is_boolean();
  if (type == "integer") return value.is_number_integer();
  if (type == "number") return value.is_number();
  return type == "null" && value.is_null();
}

// A bound as text, when the schema has it and `amount` lies beyond.
std::string Beyond(const Json& schema, const char* low, const char* high, uint64_t amount) {
  const auto least = schema.find(low);
  if (least != schema.end() && amount < least->get<uint64_t>()) return "at least " + least->dump();
  const auto most = schema.find(high);
  if (most != schema.end() && amount > most->get<uint64_t>()) return "at most " + most->dump();
  return "";
}

}  // namespace

Result<JsonSchema> JsonSchema::Parse(std::string_view text, const std::string& file) {
  JsonSchema schema;
  schema.schema_ = std::make_shared<const Json>(TRY(ParseJson(text, file)));
  TRY(schema.Learn(*schema.schema_, "", file));
  return schema;
}

Status JsonSchema::Learn(const Json& schema, const std::string& pointer, const std::string& file) {
  if (schema.is_boolean()) return {};
  if (!schema.is_object()) {
    return Fail(Code::kMalformed, "expected a schema", {.file = file, .pointer = pointer});
  }
  for (const auto& [word, value] : schema.items()) {
    const std::string at = Below(pointer, word);
    if (!Keywords().contains(word)) {
      return Fail(Code::kUnsupported, "this keyword is not understood",
                  {.file = file, .pointer = at});
    }
    if (word == "properties") {
      for (const auto& [name, member] : value.items()) TRY(Learn(member, Below(at, name), file));
    } else if (word == "items" || word == "additionalProperties" || word == "propertyNames") {
      TRY(Learn(value, at, file));
    } else if (word == "pattern") {
      const auto& expression = value.get_ref<const std::string&>();
      patterns_.emplace(expression, TRY(Pattern::Compile(expression)));
    }
  }
  return {};
}

void JsonSchema::Check(const Json& value, Findings& findings) const {
  CheckAt(*schema_, value, "", findings);
}

void JsonSchema::CheckAt(const Json& schema, const Json& value, const std::string& pointer,
                         Findings& findings) const {
  if (schema.is_boolean()) {
    if (!schema.get<bool>()) findings.Add("unknown-member", pointer, "nothing", Shown(value));
    return;
  }
  const auto type = schema.find("type");
  if (type != schema.end() && !IsOfType(value, type->get_ref<const std::string&>())) {
    findings.Add("wrong-type", pointer, type->get<std::string>(), Shown(value));
    return;
  }
  const auto choices = schema.find("enum");
  if (choices != schema.end() &&
      std::find(choices->begin(), choices->end(), value) == choices->end()) {
    findings.Add("wrong-value", pointer, ShownText("one of " + choices->dump()), Shown(value));
  }
  if (value.is_string()) {
    const auto& text = value.get_ref<const std::string&>();
    const std::string beyond = Beyond(schema, "minLength", "maxLength", text.size());
    if (!beyond.empty()) {
      findings.Add("wrong-size", pointer, beyond + " bytes", std::to_string(text.size()));
    }
    const auto pattern = schema.find("pattern");
    if (pattern != schema.end()) {
      const auto& expression = pattern->get_ref<const std::string&>();
      if (!patterns_.at(expression).Matches(text)) {
        findings.Add("wrong-form", pointer, expression, Shown(value));
      }
    }
  } else if (value.is_number()) {
    const auto least = schema.find("minimum");
    const auto most = schema.find("maximum");
    if ((least != schema.end() && value < *least) || (most != schema.end() && value > *most)) {
      findings.Add("out-of-range", pointer,
                   (least != schema.end() ? least->dump() : "") + " to " +
                       (most != schema.end() ? most->dump() : ""),
                   Shown(value));
    }
  } else if (value.is_object()) {
    CheckObject(schema, value, pointer, findings);
  } else if (value.is_array()) {
    CheckArray(schema, value, pointer, findings);
  }
}

void JsonSchema::CheckObject(const Json& schema, const Json& value, const std::string& pointer,
                             Findings& findings) const {
  static const Json kNone = Json::object();
  const auto listed = schema.find("properties");
  const Json& properties = listed == schema.end() ? kNone : *listed;
  const auto others = schema.find("additionalProperties");
  const auto names = schema.find("propertyNames");
  const auto required = schema.find("required");
  if (required != schema.end()) {
    for (const Json& name : *required) {
      const auto& text = name.get_ref<const std::string&>();
      if (!value.contains(text)) {
        findings.Add("missing-member", Below(pointer, text), "a member", "nothing");
      }
    }
  }
  const std::string beyond = Beyond(schema, "minProperties", "maxProperties", value.size());
  if (!beyond.empty()) {
    findings.Add("wrong-size", pointer, beyond + " members", std::to_string(value.size()));
  }
  for (const auto& [name, member] : value.items()) {
    const std::string at = Below(pointer, name);
    if (names != schema.end()) CheckAt(*names, name, at, findings);
    const auto own = properties.find(name);
    if (own != properties.end()) {
      CheckAt(*own, member, at, findings);
    } else if (others != schema.end()) {
      CheckAt(*others, member, at, findings);
    }
  }
}

void JsonSchema::CheckArray(const Json& schema, const Json& value, const std::string& pointer,
                            Findings& findings) const {
  const std::string beyond = Beyond(schema, "minItems", "maxItems", value.size());
  if (!beyond.empty()) {
    findings.Add("wrong-size", pointer, beyond + " items", std::to_string(value.size()));
  }
  const auto items = schema.find("items");
  const auto unique = schema.find("uniqueItems");
  std::set<std::string> seen;
  for (size_t i = 0; i < value.size(); ++i) {
    if (items != schema.end()) CheckAt(*items, value[i], Below(pointer, i), findings);
    if (unique != schema.end() && unique->get<bool>() && !seen.insert(value[i].dump()).second) {
      findings.Add("wrong-value", Below(pointer, i), "an item that is not there yet",
                   Shown(value[i]));
    }
  }
}

}  // namespace hallmark::verify
