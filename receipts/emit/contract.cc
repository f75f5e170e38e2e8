// SPDX-License-Identifier: Apache-2.0
#include "receipts/emit/contract.h"

#include <nlohmann/json.hpp>

#include "engine/base/check.h"
#include "engine/base/json.h"
#include "engine/base/sha256.h"
#include "receipts/emit/embedded.h"

namespace hallmark {
namespace {

Json ParseEmbedded(std::string_view text, const char* name) {
  auto json = ParseJson(text, name);
  CHECK(json.has_value());
  return *std::move(json);
}

}  // namespace

ContractId BuildContract() {
  const Json json = ParseEmbedded(ContractText(), "docs/contract/clauses.json");
  CHECK(json.contains("version") && json["version"].is_number_integer());
  return {json["version"].get<int64_t>(), Sha256Hex(CanonicalJson(json))};
}

std::string CpuArithmeticId() {
  const Json json = ParseEmbedded(CpuArithmeticText(), "receipts/arithmetic/cpu.json");
  return "cpu/" + std::to_string(BuildContract().version) + "/" +
         Sha256Hex(CanonicalJson(json)).substr(0, 12);
}

std::string CudaArithmeticId(const std::string& fingerprint) {
  const Json json = ParseEmbedded(CudaArithmeticText(), "receipts/arithmetic/cuda.json");
  return "cuda/" + std::to_string(BuildContract().version) + "/" +
         Sha256Hex(CanonicalJson(json) + fingerprint).substr(0, 12);
}

std::vector<std::string> ArithmeticIds() { return {CpuArithmeticId()}; }

Result<std::string> ArithmeticIdOf(const std::string& backend, const std::string& fingerprint) {
  if (backend == "cpu") return CpuArithmeticId();
  if (backend == "cuda" && !fingerprint.empty()) return CudaArithmeticId(fingerprint);
  return Fail(Code::kUnsupported, "this build knows no arithmetic of backend " + backend,
              {.flag = "--device"});
}

}  // namespace hallmark
