// SPDX-License-Identifier: Apache-2.0
// The core against its own digests and against the embedded contract, lists, register, golden files
// and prompts.
#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "engine/base/sha256.h"
#include "receipts/verify/receipt.h"

namespace hallmark::verify {
namespace {

const std::string& Text(const Json& json) { return json.get_ref<const std::string&>(); }

// A name that cannot lead out of the folder it is looked up in. Folders inside are allowed only
// for golden files.
bool IsPlainName(const std::string& name, bool folders) {
  if (name.empty() || name.front() == '/' || name.find('\\') != std::string::npos) return false;
  if (!folders && name.find('/') != std::string::npos) return false;
  return name.find("..") == std::string::npos && name.find('\0') == std::string::npos;
}

void CheckNames(const Json& files, const std::string& pointer, bool folders, Findings& findings) {
  for (size_t i = 0; i < files.size(); ++i) {
    const std::string& name = Text(files[i]["name"]);
    const std::string at = Below(pointer, i) + "/name";
    if (!IsPlainName(name, folders)) {
      findings.Add("file-name", at, "a name inside its folder", ShownText(name));
    }
    if (i == 0) continue;
    const std::string& before = Text(files[i - 1]["name"]);
    if (before == name) {
      findings.Add("file-duplicate", at, "each file once", ShownText(name));
    } else if (before > name) {
      findings.Add("file-order", at, "names in order", ShownText(name));
    }
  }
}

void CheckFileList(const Json& list, const std::string& pointer, Findings& findings) {
  const Json& files = list["files"];
  CheckNames(files, pointer + "/files", false, findings);
  findings.Equal("files-digest", pointer + "/sha256", Sha256Hex(CanonicalJson(files)),
                 Text(list["sha256"]));
}

// What the row of the whole checkpoint counted lies in its shards, and a file without a byte has
// the digest of nothing.
void CheckSizes(const Receipt& receipt, const std::string& list, Findings& findings) {
  const std::string pointer = "/predicate/core/" + list + "/files";
  const Json& files = (*receipt.core)[list]["files"];
  unsigned __int128 in_shards = 0;
  for (size_t i = 0; i < files.size(); ++i) {
    const uint64_t bytes = files[i]["bytes"].get<uint64_t>();
    if ((bytes == 0) != (Text(files[i]["sha256"]) == Sha256Hex(""))) {
      findings.Add("file-bytes", Below(pointer, i) + "/bytes", "the size of what has this digest",
                   std::to_string(bytes));
    }
    if (Text(files[i]["name"]).ends_with(".safetensors")) in_shards += bytes;
  }
  const auto row = receipt.by_name.find("format-accept/checkpoint");
  if (list != "checkpoint" || row == receipt.by_name.end()) return;
  const Json& counts = (*row->second->json)["counts"];
  if (row->second->outcome != Outcome::kPass || !counts.contains("bytes")) return;
  if (counts["bytes"].get<uint64_t>() > in_shards) {
    findings.Add("file-bytes", pointer, "shards of " + counts["bytes"].dump() + " bytes or more",
                 "smaller ones");
  }
}

// A receipt with a drafter says how it drafted; one without did not.
void CheckSettings(const Knowledge& knowledge, const Receipt& receipt, Findings& findings) {
  constexpr char kAt[] = "/predicate/core/settings";
  const Json& settings = (*receipt.core)["settings"];
  const bool drafts = receipt.core->contains("drafter");
  findings.Equal("settings-drafter", std::string(kAt) + "/drafting",
                 drafts ? "fixed-window" : "off", Text(settings["drafting"]));
  for (const char* member : {"draft_vocabulary", "drafter_weights", "samplings"}) {
    if (settings.contains(member) == drafts) continue;
    findings.Add("settings-drafter", Below(kAt, member), drafts ? "a member" : "nothing",
                 drafts ? "nothing" : Shown(settings[member]));
  }
  if (settings.contains("samplings")) {
    findings.Equal("settings-drafter", std::string(kAt) + "/samplings",
                   Json(knowledge.samplings).dump(), settings["samplings"].dump());
  }
  if (!settings.contains("draft_vocabulary")) return;
  const Json& spans = settings["draft_vocabulary"];
  for (size_t i = 0; i < spans.size(); ++i) {
    const uint64_t end = spans[i][1].get<uint64_t>();
    if (spans[i][0].get<uint64_t>() < end && end <= INT32_MAX) continue;
    findings.Add("settings-drafter", Below(std::string(kAt) + "/draft_vocabulary", i),
                 "the first id of a span, and the one past its last", ShownText(spans[i].dump()));
  }
}

void CheckMustPass(const Knowledge& knowledge, const Receipt& receipt, Findings& findings) {
  const Json& listed = (*receipt.core)["must_pass"];
  for (int rank = 0; rank <= receipt.rank; ++rank) {
    const LevelList& level = knowledge.levels[static_cast<size_t>(rank)];
    const std::string at = Below("/predicate/core/must_pass", level.name);
    const auto found = listed.find(level.name);
    if (found == listed.end()) {
      findings.Add("must-pass-missing", at, "the digest of its list", "nothing");
    } else {
      findings.Equal("must-pass-digest", at, level.sha256, Text(*found));
    }
  }
  for (const auto& [name, digest] : listed.items()) {
    const int rank = knowledge.RankOf(name);
    if (rank < 0 || rank > receipt.rank) {
      findings.Add("must-pass-level", Below("/predicate/core/must_pass", name),
                   "levels up to " + receipt.level, name);
    }
  }
}

void CheckVectors(const Knowledge& knowledge, const Receipt& receipt, Findings& findings) {
  constexpr char kAt[] = "/predicate/core/vectors";
  const Json& vectors = (*receipt.core)["vectors"];
  CheckNames(vectors, kAt, true, findings);
  std::set<std::string> listed;
  for (size_t i = 0; i < vectors.size(); ++i) {
    const std::string& name = Text(vectors[i]["name"]);
    listed.insert(name);
    const auto golden = knowledge.golden_files.find(name);
    if (golden == knowledge.golden_files.end()) {
      findings.Add("vector-unknown", Below(kAt, i) + "/name", "a published golden file",
                   ShownText(name));
      continue;
    }
    findings.Equal("vector-digest", Below(kAt, i) + "/sha256", golden->second.sha256,
                   Text(vectors[i]["sha256"]));
    findings.Equal("vector-bytes", Below(kAt, i) + "/bytes", std::to_string(golden->second.bytes),
                   vectors[i]["bytes"].dump());
  }
  std::set<std::string> needed;
  for (const ReceiptRow& row : receipt.rows) {
    const RowRule* rule = knowledge.RuleOf(row.clause, row.case_name);
    if (rule == nullptr) continue;
    for (std::string name : rule->vectors) {
      // A golden row's case begins with its model's name.
      const size_t at = name.find("{model}");
      if (at != std::string::npos) {
        name.replace(at, 7, row.case_name.substr(0, row.case_name.find(',')));
      }
      needed.insert(std::move(name));
    }
  }
  for (const std::string& name : needed) {
    if (!listed.contains(name)) findings.Add("vector-missing", kAt, name, "nothing");
  }
}

void CheckPrompts(const Knowledge& knowledge, const Receipt& receipt, Findings& findings) {
  constexpr char kAt[] = "/predicate/core/prompts";
  const Json& prompts = (*receipt.core)["prompts"];
  std::set<std::string> seen;
  for (size_t i = 0; i < prompts.size(); ++i) {
    const Json& prompt = prompts[i];
    const std::string at = Below(kAt, i);
    const std::string& name = Text(prompt["name"]);
    if (!seen.insert(name).second) {
      findings.Add("prompt-duplicate", at + "/name", "each prompt once", ShownText(name));
      continue;
    }
    const auto rule = std::find_if(
        knowledge.prompts.begin(), knowledge.prompts.end(), [&](const PromptRule& known) {
          return known.name == name && knowledge.RankOf(known.level) <= receipt.rank;
        });
    if (rule == knowledge.prompts.end()) {
      findings.Add("prompt-unknown", at + "/name", "a prompt of level " + receipt.level,
                   ShownText(name));
      continue;
    }
    findings.Equal("prompt-seed", at + "/seed", rule->seed, Text(prompt["seed"]));
    findings.Equal("prompt-tokens", at + "/tokens", std::to_string(rule->tokens),
                   prompt["tokens"].dump());
    const auto bound = BoundOf(*rule, Text(prompt["rule"]));
    if (!bound) {
      findings.Add("prompt-rule", at + "/rule", rule->words + "N", Shown(prompt["rule"]));
      continue;
    }
    findings.Equal("prompt-digest", at + "/sha256", PromptDigest(*rule, *bound),
                   Text(prompt["sha256"]));
    // Every id a prompt may hold has a logit.
    for (const ReceiptRow& row : receipt.rows) {
      const Json& counts = (*row.json)["counts"];
      if (row.outcome != Outcome::kPass || !counts.contains("positions") ||
          !counts.contains("values")) {
        continue;
      }
      const uint64_t positions = counts["positions"].get<uint64_t>();
      if (positions != 0 && counts["values"].get<uint64_t>() / positions < *bound) {
        findings.Add("prompt-bound", at + "/rule",
                     "at most " + std::to_string(counts["values"].get<uint64_t>() / positions) +
                         " ids, the logits a position of " + ShownText(row.name),
                     std::to_string(*bound));
        break;
      }
    }
  }
  for (const PromptRule& rule : knowledge.prompts) {
    if (knowledge.RankOf(rule.level) <= receipt.rank && !seen.contains(rule.name)) {
      findings.Add("prompt-missing", kAt, rule.name, "nothing");
    }
  }
}

}  // namespace

void CheckCore(const Knowledge& knowledge, const Receipt& receipt, Findings& findings) {
  const Json& core = *receipt.core;
  const Json& predicate = (*receipt.statement)["predicate"];
  findings.Equal("core-digest", "/predicate/core_sha256", Sha256Hex(CanonicalJson(core)),
                 Text(predicate["core_sha256"]));
  if (receipt.rank < 0) {
    findings.Add("unknown-level", "/predicate/core/level", "a level with a must-pass list",
                 ShownText(receipt.level));
    return;  // nothing says what such a receipt must hold
  }
  findings.Equal("contract-digest", "/predicate/core/contract/sha256", knowledge.contract_sha256,
                 Text(core["contract"]["sha256"]));
  findings.Equal("contract-version", "/predicate/core/contract/version",
                 std::to_string(knowledge.contract_version), core["contract"]["version"].dump());
  findings.Equal("tolerances-digest", "/predicate/core/tolerances", knowledge.tolerances_sha256,
                 Text(core["tolerances"]));
  if (const auto known = knowledge.ArithmeticId(receipt.backend, receipt.fingerprint)) {
    findings.Equal("arithmetic-id", "/predicate/core/arithmetic", *known, receipt.arithmetic);
  } else if (!receipt.arithmetic.starts_with(receipt.backend + "/" +
                                             std::to_string(knowledge.contract_version) + "/")) {
    findings.Add("arithmetic-id", "/predicate/core/arithmetic",
                 "contract version " + std::to_string(knowledge.contract_version),
                 ShownText(receipt.arithmetic));
  }
  CheckFileList(core["checkpoint"], "/predicate/core/checkpoint", findings);
  CheckSizes(receipt, "checkpoint", findings);
  if (core.contains("drafter")) {
    CheckFileList(core["drafter"], "/predicate/core/drafter", findings);
    CheckSizes(receipt, "drafter", findings);
  }
  CheckSettings(knowledge, receipt, findings);
  CheckMustPass(knowledge, receipt, findings);
  CheckVectors(knowledge, receipt, findings);
  CheckPrompts(knowledge, receipt, findings);
}

}  // namespace hallmark::verify
