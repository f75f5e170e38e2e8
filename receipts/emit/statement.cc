// SPDX-License-Identifier: Apache-2.0
#include "receipts/emit/statement.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "engine/base/json.h"
#include "engine/base/sha256.h"

namespace hallmark {
namespace {

Json FilesJson(std::vector<FileDigest> files) {
  std::sort(files.begin(), files.end(),
            [](const FileDigest& a, const FileDigest& b) { return a.name < b.name; });
  Json list = Json::array();
  for (const FileDigest& file : files) {
    list.push_back({{"name", file.name}, {"bytes", file.bytes}, {"sha256", file.sha256}});
  }
  return list;
}

// A list of files under one digest.
Json FolderJson(const std::vector<FileDigest>& files) {
  const Json list = FilesJson(files);
  return {{"files", list}, {"sha256", Sha256Hex(CanonicalJson(list))}};
}

// Receipts fix the width of every window, so that their counts repeat.
Json SettingsJson(const ReceiptCore& core) {
  Json settings = {{"kv", core.kv}, {"drafting", core.drafter.empty() ? "off" : "fixed-window"}};
  if (core.drafter.empty()) return settings;
  settings["drafter_weights"] = core.drafter_weights;
  settings["samplings"] = core.samplings;
  settings["draft_vocabulary"] = Json::array();
  for (const auto& [begin, end] : core.draft_vocabulary) {
    settings["draft_vocabulary"].push_back(Json::array({begin, end}));
  }
  return settings;
}

}  // namespace

Json CoreJson(const ReceiptCore& core) {
  Json prompts = Json::array();
  for (const ReceiptPrompt& prompt : core.prompts) {
    prompts.push_back({{"name", prompt.name},
                       {"rule", prompt.rule},
                       {"seed", prompt.seed},
                       {"tokens", prompt.tokens},
                       {"sha256", prompt.sha256}});
  }
  Json rows = Json::array();
  for (const Row& row : core.rows) rows.push_back(RowToJson(row));
  Json json = {{"level", LevelName(core.level)},
               {"checkpoint", FolderJson(core.checkpoint)},
               {"contract", {{"version", core.contract.version}, {"sha256", core.contract.sha256}}},
               {"must_pass", core.must_pass},
               {"tolerances", core.tolerances},
               {"vectors", FilesJson(core.vectors)},
               {"prompts", prompts},
               {"settings", SettingsJson(core)},
               {"arithmetic", core.arithmetic},
               {"rows", rows}};
  if (!core.drafter.empty()) json["drafter"] = FolderJson(core.drafter);
  return json;
}

std::string CoreDigest(const Json& core) { return Sha256Hex(CanonicalJson(core)); }

Json StatementJson(const std::vector<FileDigest>& subjects, const Json& core, const Json& context) {
  Json list = Json::array();
  for (const FileDigest& subject : subjects) {
    list.push_back({{"name", subject.name}, {"digest", {{"sha256", subject.sha256}}}});
  }
  return {{"_type", "https://in-toto.io/Statement/v1"},
          {"subject", list},
          {"predicateType", "urn:hallmark:receipt/run/v1"},
          {"predicate",
           {{"core", core},
            {"core_sha256", CoreDigest(core)},
            {"context", context},
            {"context_sha256", Sha256Hex(CanonicalJson(context))}}}};
}

std::string ReceiptName(Level level, const std::string& arithmetic,
                        const std::string& core_digest) {
  return std::string(LevelName(level)) + "." + arithmetic.substr(0, arithmetic.find('/')) + "." +
         core_digest.substr(0, 12);
}

}  // namespace hallmark
