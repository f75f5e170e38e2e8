// SPDX-License-Identifier: Apache-2.0
#include "receipts/emit/must_pass.h"

#include <nlohmann/json.hpp>
#include <set>

#include "engine/base/check.h"
#include "engine/base/json.h"
#include "engine/base/sha256.h"
#include "receipts/emit/embedded.h"

namespace hallmark {
namespace {

Result<std::vector<std::string>> ReadNames(const Json& json, Locator where) {
  if (!json.is_array() || json.empty()) {
    return Fail(Code::kMalformed, "expected a list of cases", where);
  }
  std::vector<std::string> names;
  for (const Json& name : json) {
    if (!name.is_string() || name.get_ref<const std::string&>().find('/') == std::string::npos) {
      return Fail(Code::kMalformed, "expected names of the form clause/case", where);
    }
    names.push_back(name.get<std::string>());
  }
  return names;
}

Result<GoldenModel> ReadGoldenModel(const Json& json, Locator where) {
  if (!json.is_object() || !json.contains("name") || !json["name"].is_string() ||
      !json.contains("files") || !json["files"].is_object() || json["files"].empty() ||
      !json.contains("cases")) {
    return Fail(Code::kMalformed, "expected a name, files and cases", where);
  }
  GoldenModel model;
  model.name = json["name"].get<std::string>();
  for (const auto& [name, digest] : json["files"].items()) {
    if (!digest.is_string()) return Fail(Code::kMalformed, "expected digests", where);
    model.files[name] = digest.get<std::string>();
  }
  where.pointer += "/cases";
  model.cases = TRY(ReadNames(json["cases"], where));
  return model;
}

std::string_view TextOf(Level level) { return MustPassText(static_cast<int>(level)); }

}  // namespace

Result<MustPassList> ParseMustPass(std::string_view text, const std::string& file) {
  const Json json = TRY(ParseJson(text, file));
  MustPassList list;
  const bool named = json.is_object() && json.contains("level") && json["level"].is_string();
  const auto level = named ? ParseLevel(json["level"].get<std::string>()) : std::nullopt;
  if (!level) {
    return Fail(Code::kMalformed, "expected a level", {.file = file, .pointer = "/level"});
  }
  list.level = *level;
  list.cases = TRY(ReadNames(json.contains("cases") ? json["cases"] : Json(),
                             {.file = file, .pointer = "/cases"}));
  if (json.contains("backends")) {
    const Locator where{.file = file, .pointer = "/backends"};
    if (!json["backends"].is_object()) return Fail(Code::kMalformed, "expected an object", where);
    for (const auto& [backend, names] : json["backends"].items()) {
      list.backends[backend] =
          TRY(ReadNames(names, {.file = file, .pointer = where.pointer + "/" + backend}));
    }
  }
  if (json.contains("golden_models")) {
    for (size_t i = 0; i < json["golden_models"].size(); ++i) {
      list.golden_models.push_back(
          TRY(ReadGoldenModel(json["golden_models"][i],
                              {.file = file, .pointer = "/golden_models/" + std::to_string(i)})));
    }
  }
  return list;
}

MustPassList BuildMustPass(Level level) {
  auto list = ParseMustPass(TextOf(level), "receipts/must_pass");
  CHECK(list.has_value() && list->level == level);
  return *std::move(list);
}

std::string MustPassDigest(Level level) {
  auto json = ParseJson(TextOf(level), "receipts/must_pass");
  CHECK(json.has_value());
  return Sha256Hex(CanonicalJson(*json));
}

const GoldenModel* FindGoldenModel(const MustPassList& list,
                                   const std::map<std::string, std::string>& digests) {
  for (const GoldenModel& model : list.golden_models) {
    bool same = true;
    for (const auto& [name, digest] : model.files) {
      const auto found = digests.find(name);
      same = same && found != digests.end() && found->second == digest;
    }
    if (same) return &model;
  }
  return nullptr;
}

Verdict Judge(Level level, const std::string& backend,
              const std::map<std::string, std::string>& digests, std::span<const Row> rows) {
  std::set<std::string> present;
  std::vector<Outcome> outcomes;
  for (const Row& row : rows) {
    present.insert(row.clause + "/" + row.case_name);
    outcomes.push_back(row.outcome);
  }
  Verdict verdict;
  const auto need = [&](const std::vector<std::string>& cases) {
    for (const std::string& name : cases) {
      if (!present.contains(name)) verdict.missing.push_back(name);
    }
  };
  for (int below = 0; below <= static_cast<int>(level); ++below) {
    const MustPassList list = BuildMustPass(static_cast<Level>(below));
    need(list.cases);
    if (const auto more = list.backends.find(backend); more != list.backends.end()) {
      need(more->second);
    }
    if (const GoldenModel* model = FindGoldenModel(list, digests)) need(model->cases);
  }
  if (!verdict.missing.empty()) outcomes.push_back(Outcome::kFail);
  verdict.outcome = Worst(outcomes);
  return verdict;
}

}  // namespace hallmark
