// SPDX-License-Identifier: Apache-2.0
// The context and the subjects against the core. A context cannot be proven from a document: these
// checks find one that contradicts itself or the core, and one that was changed without care.
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "engine/base/sha256.h"
#include "receipts/verify/calendar.h"
#include "receipts/verify/receipt.h"

namespace hallmark::verify {
namespace {

const std::string& Text(const Json& json) { return json.get_ref<const std::string&>(); }

bool IsShard(const std::string& name) { return name.ends_with(".safetensors"); }

void CheckSubjects(const Receipt& receipt, Findings& findings) {
  // Name to digest: the shards of the checkpoint, those of the drafter, and the program.
  std::map<std::string, std::string> expected;
  for (const auto& [name, digest] : receipt.files) {
    if (IsShard(name)) expected[name] = digest;
  }
  if (expected.empty()) {
    findings.Add("subject-without-shards", "/predicate/core/checkpoint/files",
                 "at least one .safetensors file", "none");
  }
  expected["hallmark"] = Text((*receipt.context)["engine"]["binary_sha256"]);
  const Json& subjects = (*receipt.statement)["subject"];
  std::set<std::string> seen;
  for (size_t i = 0; i < subjects.size(); ++i) {
    const std::string at = Below("/subject", i);
    const std::string& name = Text(subjects[i]["name"]);
    if (!seen.insert(name).second) {
      findings.Add("subject-duplicate", at + "/name", "each subject once", ShownText(name));
      continue;
    }
    const auto found = expected.find(name);
    if (found == expected.end()) {
      findings.Add("subject-unknown", at + "/name", "a shard of the core, or hallmark",
                   ShownText(name));
      continue;
    }
    findings.Equal("subject-digest", at + "/digest/sha256", found->second,
                   Text(subjects[i]["digest"]["sha256"]));
  }
  for (const auto& [name, digest] : expected) {
    if (!seen.contains(name)) findings.Add("subject-missing", "/subject", ShownText(name), "none");
  }
}

// The verdict that the rows give by themselves, no policy and no waiver asked.
Json OwnVerdict(const Receipt& receipt) {
  Outcome worst = Outcome::kPass;
  if (receipt.rows.empty()) worst = Outcome::kHarnessError;
  for (const ReceiptRow& row : receipt.rows) worst = std::max(worst, row.outcome);
  if (!receipt.missing.empty()) worst = std::max(worst, Outcome::kFail);
  return {{"missing", receipt.missing}, {"outcome", OutcomeName(worst)}};
}

void CheckTimes(const Json& times, Findings& findings) {
  constexpr char kAt[] = "/predicate/context/times";
  // Both ends are cut to seconds, and a leap second may lie between them.
  constexpr double kSlack = 2;
  const auto started = ParseUtc(Text(times["started"]));
  const auto finished = ParseUtc(Text(times["finished"]));
  if (!started || !finished) {
    findings.Add("context-times", std::string(kAt) + (started ? "/finished" : "/started"),
                 "a time that exists", Shown(times[started ? "finished" : "started"]));
    return;
  }
  if (*finished < *started) {
    findings.Add("context-times", std::string(kAt) + "/finished", "not before it started",
                 Shown(times["finished"]));
  } else if (times["seconds"].get<double>() > static_cast<double>(*finished - *started) + kSlack) {
    findings.Add("context-times", std::string(kAt) + "/seconds",
                 "no more than lies between the two times", Shown(times["seconds"]));
  }
}

}  // namespace

void CheckContext(const Knowledge& knowledge, const Receipt& receipt, Findings& findings) {
  const Json& context = *receipt.context;
  findings.Equal("context-digest", "/predicate/context_sha256", Sha256Hex(CanonicalJson(context)),
                 Text((*receipt.statement)["predicate"]["context_sha256"]));
  CheckSubjects(receipt, findings);
  findings.Equal("context-backend", "/predicate/context/engine/backend", receipt.backend,
                 Text(context["engine"]["backend"]));
  const auto arithmetic = knowledge.arithmetics.find(receipt.backend);
  const bool needed = arithmetic != knowledge.arithmetics.end() && arithmetic->second.fingerprints;
  if (needed == receipt.fingerprint.empty()) {
    findings.Add("context-device", "/predicate/context/engine",
                 needed ? "a device with its fingerprint" : "no device beside the machine",
                 needed ? "none" : ShownText(receipt.fingerprint));
  }
  CheckTimes(context["times"], findings);
  const Json own = OwnVerdict(receipt);
  for (const char* member : {"missing", "outcome"}) {
    if (context["verdict"][member] != own[member]) {
      findings.Add("context-verdict", Below("/predicate/context/verdict", member),
                   ShownText(own[member].dump()), ShownText(context["verdict"][member].dump()));
    }
  }
}

}  // namespace hallmark::verify
