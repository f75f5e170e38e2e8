// SPDX-License-Identifier: Apache-2.0
#include "receipts/verify/verify.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "engine/base/sha256.h"
#include "receipts/verify/checkpoint_folder.h"
#include "receipts/verify/document.h"
#include "receipts/verify/receipt.h"

namespace hallmark::verify {
namespace {

constexpr std::string_view kEnvelopeSuffix = ".dsse.json";
constexpr std::string_view kReceiptSuffix = ".intoto.jsonl";

// "L2.cpu.0123456789ab" and the suffix of its kind.
void CheckName(std::string_view name, const Receipt& receipt, const std::string& core_sha256,
               Findings& findings) {
  const std::string_view suffix =
      name.ends_with(kEnvelopeSuffix) ? kEnvelopeSuffix : kReceiptSuffix;
  const std::string expected =
      receipt.level + "." + receipt.backend + "." + core_sha256.substr(0, 12) + std::string(suffix);
  findings.Equal("file-name", "", expected, name);
}

bool Accepts(const Knowledge& knowledge, const Policy& policy, const Receipt& receipt) {
  for (const std::string& id : policy.arithmetic) {
    if (id == receipt.arithmetic) return true;
    if (knowledge.ArithmeticId(id, receipt.fingerprint) == receipt.arithmetic) return true;
  }
  return false;
}

// The cases that the lists of some levels demand of this receipt.
std::vector<std::string> Needed(const Knowledge& knowledge, const Receipt& receipt,
                                const std::vector<std::string>& levels) {
  std::vector<std::string> names;
  for (const std::string& level : levels) {
    const LevelList& list = knowledge.levels[static_cast<size_t>(knowledge.RankOf(level))];
    const std::vector<std::string> cases = list.CasesOf(receipt.backend);
    names.insert(names.end(), cases.begin(), cases.end());
    for (const GoldenModel& model : list.golden_models) {
      if (std::find(receipt.golden.begin(), receipt.golden.end(), &model) != receipt.golden.end()) {
        names.insert(names.end(), model.cases.begin(), model.cases.end());
      }
    }
  }
  return names;
}

// Demands of the policy that no row answers.
void CheckPolicy(const Knowledge& knowledge, const Policy& policy, const Receipt& receipt,
                 Findings& findings) {
  if (receipt.rank < knowledge.RankOf(policy.level)) {
    findings.Add("policy-level", "/predicate/core/level", "at least " + policy.level,
                 receipt.level);
  }
  if (!Accepts(knowledge, policy, receipt)) {
    std::string ids;
    for (const std::string& id : policy.arithmetic) ids += (ids.empty() ? "" : ", ") + id;
    findings.Add("policy-arithmetic", "/predicate/core/arithmetic", "one of " + ids,
                 receipt.arithmetic);
  }
  if (!policy.kv.contains(receipt.kv)) {
    findings.Add("policy-kv", "/predicate/core/settings/kv", "a cache type the policy names",
                 receipt.kv);
  }
  if (policy.needs_drafter && receipt.drafter.empty()) {
    findings.Add("policy-drafter", "/predicate/core/drafter", "a drafter", "nothing");
  }
  std::vector<std::string> clauses = policy.clauses;
  if (const auto more = policy.backends.find(receipt.backend); more != policy.backends.end()) {
    clauses.insert(clauses.end(), more->second.begin(), more->second.end());
  }
  for (const std::string& clause : clauses) {
    const bool shown = std::any_of(receipt.rows.begin(), receipt.rows.end(),
                                   [&](const ReceiptRow& row) { return row.clause == clause; });
    if (!shown) findings.Add("policy-clause", "/predicate/core/rows", "a row of " + clause, "none");
  }
}

class Judgement {
 public:
  Judgement(const Knowledge& knowledge, const Receipt& receipt, const VerifyOptions& options,
            ReceiptVerdict& verdict, Findings& findings)
      : knowledge_(knowledge),
        receipt_(receipt),
        options_(options),
        verdict_(verdict),
        findings_(findings) {}

  // The worst outcome of what the policy demands.
  Outcome Under(const Policy& policy) {
    Outcome worst = Outcome::kPass;
    for (const std::string& name : Needed(knowledge_, receipt_, policy.must_pass)) {
      const auto found = receipt_.by_name.find(name);
      if (found == receipt_.by_name.end()) {
        findings_.Add("row-missing", "/predicate/core/rows", name, "nothing");
        worst = std::max(worst, Outcome::kFail);
        continue;
      }
      worst = std::max(worst, Judge(*found->second));
    }
    return worst;
  }

  // The highest level whose lists, and those below, passed whole and without a waiver.
  std::string LevelReached() const {
    std::string reached;
    for (int rank = 0; rank <= receipt_.rank; ++rank) {
      const std::string& level = knowledge_.levels[static_cast<size_t>(rank)].name;
      for (const std::string& name : Needed(knowledge_, receipt_, {level})) {
        const auto found = receipt_.by_name.find(name);
        if (found == receipt_.by_name.end() || found->second->outcome != Outcome::kPass) {
          return reached;
        }
      }
      reached = level;
    }
    return reached;
  }

 private:
  Outcome Judge(const ReceiptRow& row) {
    if (row.outcome == Outcome::kPass) return Outcome::kPass;
    if (row.outcome == Outcome::kFail) {
      for (const Waiver& waiver : options_.waivers) {
        if (waiver.case_name != row.name) continue;
        verdict_.waived.push_back(waiver);
        return Outcome::kWaived;
      }
    }
    findings_.Add("row-not-passed", row.pointer + "/outcome", "pass: " + ShownText(row.name),
                  std::string(OutcomeName(row.outcome)));
    return row.outcome;
  }

  const Knowledge& knowledge_;
  const Receipt& receipt_;
  const VerifyOptions& options_;
  ReceiptVerdict& verdict_;
  Findings& findings_;
};

// Judges the receipt itself. Returns whether it holds together: no fault but of outcomes.
Result<bool> JudgePayload(const Knowledge& knowledge, std::string_view name, std::string_view bytes,
                          const VerifyOptions& options, ReceiptVerdict& verdict,
                          Findings& findings) {
  // A file that no receipt can be is not read to its end, which may be far.
  if (bytes.size() <= kMaxReceiptBytes) verdict.sha256 = Sha256Hex(bytes);
  verdict.outcome = Outcome::kFail;
  const std::optional<Json> statement = ReadReceipt(knowledge, bytes, findings);
  if (!statement) return false;
  const Receipt receipt = ReadClaims(knowledge, *statement);
  verdict.core_sha256 = Sha256Hex(CanonicalJson(*receipt.core));
  verdict.level_claimed = receipt.level;
  for (const ReceiptRow& row : receipt.rows) {
    ++verdict.clauses[row.clause][std::string(OutcomeName(row.outcome))];
  }
  CheckCore(knowledge, receipt, findings);
  if (receipt.rank < 0) return false;
  CheckRows(knowledge, receipt, findings);
  CheckPins(knowledge, receipt, findings);
  CheckContext(knowledge, receipt, findings);
  CheckName(name, receipt, verdict.core_sha256, findings);
  const bool sound = findings.empty();
  if (!options.checkpoint_folder.empty()) {
    TRY(CheckFolder((*receipt.core)["checkpoint"]["files"], options.checkpoint_folder,
                    "/predicate/core/checkpoint/files", findings));
  }
  if (!options.drafter_folder.empty()) {
    if (receipt.drafter.empty()) {
      findings.Add("folder-without-files", "/predicate/core/drafter", "a drafter", "nothing");
    } else {
      TRY(CheckFolder((*receipt.core)["drafter"]["files"], options.drafter_folder,
                      "/predicate/core/drafter/files", findings));
    }
  }
  const Policy* policy =
      options.policy != nullptr ? options.policy : knowledge.PolicyOf(receipt.level);
  if (policy == nullptr) {
    findings.Add("policy-missing", "/predicate/core/level", "a built-in policy of the level",
                 "none");
    return sound;
  }
  verdict.policy = policy->name;
  verdict.policy_sha256 = policy->sha256;
  CheckPolicy(knowledge, *policy, receipt, findings);
  // Whatever stands so far is a contradiction or a demand unmet: fail, whatever the rows say.
  const Outcome before = findings.empty() ? Outcome::kPass : Outcome::kFail;
  Judgement judgement(knowledge, receipt, options, verdict, findings);
  verdict.outcome = std::max(before, judgement.Under(*policy));
  if (sound) verdict.level_reached = judgement.LevelReached();
  return sound;
}

// Holds an envelope's signature against the key that is demanded.
void CheckSignature(const Envelope& envelope, const std::optional<PublicKey>& key,
                    bool payload_sound, ReceiptVerdict& verdict, Findings& findings) {
  if (!key) {
    verdict.signature = envelope.signature.empty() ? "none" : "unchecked";
    return;
  }
  verdict.signature = "refused";
  if (envelope.signature.empty()) {
    findings.Add("signature-missing", "/signatures", "one signature", "none");
  } else if (envelope.keyid != KeyId(*key)) {
    findings.Add("signature-key", "/signatures/0/keyid", KeyId(*key), ShownText(envelope.keyid));
  } else if (SignatureHolds(envelope, *key)) {
    verdict.signature = "valid";
  } else if (!payload_sound) {
    // A receipt carries digests of its own parts, so a payload that was changed says so itself.
    findings.Add("signature-payload", "/payload", "the payload that was signed", "another one");
  } else {
    findings.Add("signature-wrong", "/signatures/0/sig", "a signature of this payload by this key",
                 "another one");
  }
  if (verdict.signature == "refused") verdict.outcome = std::max(verdict.outcome, Outcome::kFail);
}

}  // namespace

Result<ReceiptVerdict> VerifyReceipt(const Knowledge& knowledge, std::string_view name,
                                     std::string_view bytes, const VerifyOptions& options) {
  ReceiptVerdict verdict{.file = std::string(name)};
  Findings findings;
  if (name.ends_with(kEnvelopeSuffix)) {
    const std::optional<Envelope> envelope = ReadEnvelope(bytes, findings);
    if (envelope) {
      const bool sound =
          TRY(JudgePayload(knowledge, name, envelope->payload, options, verdict, findings));
      CheckSignature(*envelope, options.public_key, sound, verdict, findings);
    }
  } else {
    TRY(JudgePayload(knowledge, name, bytes, options, verdict, findings));
    if (options.public_key) {
      verdict.signature = "refused";
      findings.Add("signature-missing", "", "a signed envelope, *.dsse.json", "a bare receipt");
      verdict.outcome = std::max(verdict.outcome, Outcome::kFail);
    }
  }
  verdict.reasons = findings.reasons();
  verdict.reasons_found = findings.total();
  return verdict;
}

}  // namespace hallmark::verify
