// SPDX-License-Identifier: Apache-2.0
// JsonSchema: the part of JSON Schema (Draft 7) that the schemas of receipts use, so that the
// published schema itself decides the shape of a receipt. A schema with any other keyword is
// refused when read: what is not understood must not be passed over.
#ifndef HALLMARK_RECEIPTS_VERIFY_JSON_SCHEMA_H_
#define HALLMARK_RECEIPTS_VERIFY_JSON_SCHEMA_H_

#include <map>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

#include "engine/base/result.h"
#include "receipts/verify/pattern.h"
#include "receipts/verify/reason.h"

namespace hallmark::verify {

class JsonSchema {
 public:
  // kUnsupported with the pointer of a keyword outside the part above.
  static Result<JsonSchema> Parse(std::string_view text, const std::string& file);

  // Adds wrong-type, missing-member, unknown-member, wrong-value, wrong-form, out-of-range or
  // wrong-size, each with its pointer, for every fault of `value`.
  void Check(const nlohmann::json& value, Findings& findings) const;

 private:
  JsonSchema() = default;
  Status Learn(const nlohmann::json& schema, const std::string& pointer, const std::string& file);
  void CheckAt(const nlohmann::json& schema, const nlohmann::json& value,
               const std::string& pointer, Findings& findings) const;
  void CheckObject(const nlohmann::json& schema, const nlohmann::json& value,
                   const std::string& pointer, Findings& findings) const;
  void CheckArray(const nlohmann::json& schema, const nlohmann::json& value,
                  const std::string& pointer, Findings& findings) const;

  std::shared_ptr<const nlohmann::json> schema_;
  std::map<std::string, Pattern> patterns_;
};

}  // namespace hallmark::verify

#endif  // HALLMARK_RECEIPTS_VERIFY_JSON_SCHEMA_H_
