// SPDX-License-Identifier: Apache-2.0
#include "receipts/emit/must_pass_text.h"

#include <nlohmann/json.hpp>

#include "conformance/cases/draft_golden.h"
#include "conformance/cases/model_golden.h"
#include "engine/base/json.h"
#include "engine/base/mapped_file.h"
#include "engine/base/sha256.h"
#include "receipts/emit/must_pass.h"

namespace hallmark {
namespace {

// The files that decide every number of a model; a tokenizer decides none.
constexpr const char* kModelFiles[] = {"config.json", "model.safetensors"};

Status AddFiles(const std::string& folder, const std::string& prefix, Json& files) {
  for (const char* file : kModelFiles) {
    const MappedFile map = TRY(MappedFile::Open(folder + "/" + file));
    files[prefix + file] = Sha256Hex(map.bytes());
    TRY(map.Intact());
  }
  return {};
}

Result<Json> GoldenModelJson(const std::string& golden, const std::string& name) {
  CaseRegistry registry;
  TRY(AddModelGoldenCases({.golden = golden}, name, registry));
  Json files = Json::object();
  TRY(AddFiles(golden + "/models/" + name, "", files));
  return Json{{"name", name}, {"files", files}, {"cases", registry.Names()}};
}

// A drafter is golden together with the target it was made for.
Result<Json> GoldenDrafterJson(const std::string& golden, const GoldenDrafter& pair) {
  const std::string name(pair.drafter);
  CaseRegistry registry;
  TRY(AddDraftGoldenCases({.golden = golden}, name, registry));
  Json files = Json::object();
  TRY(AddFiles(golden + "/models/" + std::string(pair.target), "", files));
  TRY(AddFiles(golden + "/models/" + name, kDrafterPrefix, files));
  return Json{{"name", name}, {"files", files}, {"cases", registry.Names()}};
}

}  // namespace

Result<std::string> MustPassTextOf(Level level, const std::string& golden) {
  CaseRegistry registry;
  TRY(AddLevelCases(level, {.golden = golden}, registry));
  Json json = {{"schema", "urn:hallmark:schema:must-pass:v1"},
               {"level", LevelName(level)},
               {"cases", registry.Names()}};
  for (const std::string_view backend : kBackendsWithCases) {
    CaseRegistry more;
    TRY(AddBackendCases(level, backend, {.golden = golden}, more));
    if (!more.Names().empty()) json["backends"][std::string(backend)] = more.Names();
  }
  if (level == Level::kL2) {
    json["golden_models"] = Json::array();
    for (const std::string_view name : GoldenModelNames()) {
      json["golden_models"].push_back(TRY(GoldenModelJson(golden, std::string(name))));
    }
  }
  if (level == Level::kL3) {
    json["golden_models"] = Json::array();
    for (const GoldenDrafter& pair : GoldenDrafters()) {
      json["golden_models"].push_back(TRY(GoldenDrafterJson(golden, pair)));
    }
  }
  return CanonicalJson(json);
}

}  // namespace hallmark
