// SPDX-License-Identifier: Apache-2.0
// Forgeries with every digest recomputed: each is denied, and with the reason that names it.
#include "receipts/verify/verify.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <nlohmann/json.hpp>

#include "receipts/verify/edited_receipt.h"
#include "receipts/verify/embedded.h"
#include "receipts/verify/knowledge.h"

namespace hallmark::verify {
namespace {

constexpr char kCore[] = "/predicate/core";
const std::string kDigest(64, 'a');

EditedReceipt Scribe() { return EditedReceipt(PublishedReceiptOf("scribe-11m-exl3")); }

// A receipt of a checkpoint that nobody published: other config, no golden rows, sealed. What holds
// for it is all the verifier has for the models of its users.
EditedReceipt Unpublished() {
  EditedReceipt receipt = Scribe();
  for (Json& file : receipt.core()["checkpoint"]["files"]) {
    if (file["name"] == "config.json") file["sha256"] = kDigest;
  }
  Json rows = Json::array();
  for (const Json& row : receipt.rows()) {
    if (row["clause"] != "model-golden") rows.push_back(row);
  }
  receipt.rows() = rows;
  receipt.SealAll();
  return receipt;
}

bool Has(const ReceiptVerdict& verdict, const std::string& code) {
  return std::any_of(verdict.reasons.begin(), verdict.reasons.end(),
                     [&](const Reason& reason) { return reason.code == code; });
}

TEST(Verify, PublishedReceiptsPassAtTheirLevel) {
  for (const PublishedReceipt& published : PublishedReceipts()) {
    const ReceiptVerdict verdict = VerifyBytes(published.name, published.bytes);
    EXPECT_EQ(ReasonsOf(verdict), std::vector<std::string>{}) << published.name;
    EXPECT_EQ(verdict.outcome, Outcome::kPass);
    EXPECT_EQ(verdict.level_reached, verdict.level_claimed);
    EXPECT_EQ(verdict.policy, verdict.level_claimed);
    EXPECT_FALSE(verdict.clauses.empty());
  }
}

TEST(Verify, AReceiptOfACheckpointThatNobodyPublishedPasses) {
  const ReceiptVerdict verdict = Unpublished().Verify();
  EXPECT_EQ(ReasonsOf(verdict), std::vector<std::string>{});
  EXPECT_EQ(verdict.level_reached, "L2");
}

Json CudaRow(const std::string& name, Json counts) {
  const size_t slash = name.find('/');
  return {{"clause", name.substr(0, slash)},
          {"case", name.substr(slash + 1)},
          {"outcome", "pass"},
          {"expected", kDigest},
          {"actual", kDigest},
          {"counts", std::move(counts)}};
}

// The same by a GPU of this fingerprint, with the rows that a GPU's receipt holds besides.
EditedReceipt UnpublishedCuda(const std::string& fingerprint = kDigest) {
  EditedReceipt receipt = Unpublished();
  receipt.context()["engine"]["backend"] = "cuda";
  receipt.context()["engine"]["device"] = {{"name", "a GPU"},
                                           {"compute_capability", "9.0"},
                                           {"driver", "13.0"},
                                           {"runtime", "13.0"},
                                           {"fingerprint", fingerprint}};
  receipt.core()["arithmetic"] = BuiltInKnowledge().ArithmeticId("cuda", fingerprint).value();
  std::vector<Json> rows(receipt.rows().begin(), receipt.rows().end());
  rows.push_back(
      CudaRow("counters-zero/split-linears",
              {{"counters", 36}, {"growths", 2}, {"split_launches", 8}, {"values", 90000}}));
  rows.push_back(CudaRow("graph-equals-eager/rounds", {{"distinct_ids", 90},
                                                       {"entropy_millinats", 4000},
                                                       {"positions", 200},
                                                       {"replays", 40},
                                                       {"values", 200000000}}));
  rows.push_back(
      CudaRow("mapped-equals-device/rows", {{"rows", 677}, {"tables", 3}, {"values", 173312}}));
  const auto key = [](const Json& row) {
    return std::pair(row["clause"].get<std::string>(), row["case"].get<std::string>());
  };
  std::sort(rows.begin(), rows.end(),
            [&](const Json& a, const Json& b) { return key(a) < key(b); });
  receipt.rows() = rows;
  receipt.SealAll();
  return receipt;
}

// A GPU's id is that of the definition and of the fingerprint which the receipt itself states.
TEST(Verify, AReceiptOfAGpuIsJudgedByItsDevicesFingerprint) {
  EditedReceipt receipt = UnpublishedCuda();
  EXPECT_EQ(ReasonsOf(receipt.Verify()), std::vector<std::string>{});
  EXPECT_EQ(receipt.Verify().level_reached, "L2");
  receipt.context()["engine"]["device"]["fingerprint"] = std::string(64, 'b');
  receipt.SealAll();
  const std::vector<std::string> reasons = ReasonsOf(receipt.Verify());
  EXPECT_NE(std::find(reasons.begin(), reasons.end(), "arithmetic-id /predicate/core/arithmetic"),
            reasons.end());
}

struct Forgery {
  const char* name;
  std::function<void(EditedReceipt&)> edit;
  std::string reason;  // "code pointer"
};

// Applies, seals every digest, and demands the reason among those given.
void ExpectDenied(EditedReceipt receipt, const Forgery& forgery) {
  forgery.edit(receipt);
  receipt.SealAll();
  const ReceiptVerdict verdict = receipt.Verify();
  EXPECT_NE(verdict.outcome, Outcome::kPass) << forgery.name;
  EXPECT_EQ(verdict.level_reached, "") << forgery.name;
  const std::vector<std::string> reasons = ReasonsOf(verdict);
  EXPECT_TRUE(std::find(reasons.begin(), reasons.end(), forgery.reason) != reasons.end())
      << forgery.name << ": expected " << forgery.reason << ", found "
      << (reasons.empty() ? "nothing" : reasons.front());
}

std::string At(EditedReceipt& receipt, const std::string& name) {
  return std::string(kCore) + "/rows/" + std::to_string(&receipt.row(name) - &receipt.rows()[0]);
}

// What a GPU owes besides is owed by whoever names a GPU, and shown by nobody else.
TEST(Verify, ARowThatOnlyAGpuHasCanBeNeitherDroppedNorDodged) {
  EditedReceipt base = UnpublishedCuda();
  const std::string counters = At(base, "counters-zero/split-linears");
  const std::string graphs = At(base, "graph-equals-eager/rounds");
  const std::string tables = At(base, "mapped-equals-device/rows");
  std::vector<Forgery> forgeries = {
      {"calls itself the CPU in the context",
       [](EditedReceipt& r) { r.context()["engine"]["backend"] = "cpu"; },
       "context-backend /predicate/context/engine/backend"},
      {"calls its id one of the CPU",
       [](EditedReceipt& r) {
         std::string id = r.core()["arithmetic"].get<std::string>();
         r.core()["arithmetic"] = "cpu" + id.substr(id.find('/'));
         r.context()["engine"]["backend"] = "cpu";
       },
       "arithmetic-id /predicate/core/arithmetic"},
      {"takes the CPU's id and keeps its device",
       [](EditedReceipt& r) {
         r.core()["arithmetic"] = BuiltInKnowledge().ArithmeticId("cpu", "").value();
         r.context()["engine"]["backend"] = "cpu";
       },
       "context-device /predicate/context/engine"},
      {"takes the CPU's id and keeps its rows",
       [](EditedReceipt& r) {
         r.core()["arithmetic"] = BuiltInKnowledge().ArithmeticId("cpu", "").value();
         r.context()["engine"]["backend"] = "cpu";
         r.context()["engine"].erase("device");
       },
       "row-unknown-case " + counters + "/case"},
      {"takes a backend that nobody knows",
       [](EditedReceipt& r) {
         std::string id = r.core()["arithmetic"].get<std::string>();
         r.core()["arithmetic"] = "cudb" + id.substr(id.find('/'));
         r.context()["engine"]["backend"] = "cudb";
         r.EraseRow("counters-zero/split-linears");
       },
       "wrong-form /predicate/core/arithmetic"},
      {"a counter that nobody read",
       [](EditedReceipt& r) { r.row("counters-zero/split-linears")["counts"]["counters"] = 35; },
       "row-count-low " + counters + "/counts/counters"},
      {"counters that never grew",
       [](EditedReceipt& r) { r.row("counters-zero/split-linears")["counts"]["growths"] = 1; },
       "row-count-low " + counters + "/counts/growths"},
      {"a linear that was not split",
       [](EditedReceipt& r) {
         r.row("counters-zero/split-linears")["counts"]["split_launches"] = 7;
       },
       "row-count-low " + counters + "/counts/split_launches"},
      {"no round was replayed",
       [](EditedReceipt& r) { r.row("graph-equals-eager/rounds")["counts"].erase("replays"); },
       "row-count-missing " + graphs + "/counts/replays"},
      {"few rounds were replayed",
       [](EditedReceipt& r) { r.row("graph-equals-eager/rounds")["counts"]["replays"] = 39; },
       "row-count-low " + graphs + "/counts/replays"},
      {"one table of the three",
       [](EditedReceipt& r) { r.row("mapped-equals-device/rows")["counts"]["tables"] = 1; },
       "row-count-low " + tables + "/counts/tables"},
      {"not supported, it says",
       [](EditedReceipt& r) { r.row("mapped-equals-device/rows")["outcome"] = "notSupported"; },
       "row-not-passed " + tables + "/outcome"}};
  for (const char* name :
       {"counters-zero/split-linears", "graph-equals-eager/rounds", "mapped-equals-device/rows"}) {
    const std::string clause = std::string(name).substr(0, std::string(name).find('/'));
    const auto drop = [name](EditedReceipt& r) { r.EraseRow(name); };
    forgeries.push_back({name, drop, "row-missing /predicate/core/rows"});
    forgeries.push_back({name, drop, "policy-clause /predicate/core/rows"});
    forgeries.push_back({name, drop, "context-verdict /predicate/context/verdict/missing"});
  }
  for (const Forgery& forgery : forgeries) ExpectDenied(UnpublishedCuda(), forgery);
}

// A receipt of the CPU holds none of them, passed or not.
TEST(Verify, AReceiptOfTheCpuHoldsNoRowOfAGpu) {
  for (const char* outcome : {"pass", "notSupported"}) {
    EditedReceipt receipt = Unpublished();
    Json row = CudaRow("graph-equals-eager/rounds", {{"replays", 40}});
    row["outcome"] = outcome;
    std::vector<Json> rows(receipt.rows().begin(), receipt.rows().end());
    const auto at = std::find_if(rows.begin(), rows.end(), [](const Json& r) {
      return r["clause"].get<std::string>() > "graph-equals-eager";
    });
    const auto index = at - rows.begin();
    rows.insert(at, row);
    receipt.rows() = rows;
    receipt.SealAll();
    const std::vector<std::string> reasons = ReasonsOf(receipt.Verify());
    const std::string reason =
        "row-unknown-case /predicate/core/rows/" + std::to_string(index) + "/case";
    EXPECT_NE(std::find(reasons.begin(), reasons.end(), reason), reasons.end()) << outcome;
  }
}

TEST(Verify, ForgeriesOfAnUnpublishedReceiptAreDeniedByWhatTheyContradict) {
  EditedReceipt base = Unpublished();
  const std::string ids = At(base, "text-exact/ids");
  const std::string cut = At(base, "chunked-equals-whole/prompt,cut=16");
  const std::string linears = At(base, "row-invariance/linears,rows=16");
  const std::vector<Forgery> forgeries = {
      {"a row is gone", [](EditedReceipt& r) { r.EraseRow("chunked-equals-whole/prompt,cut=16"); },
       "row-missing /predicate/core/rows"},
      {"two rows change places", [](EditedReceipt& r) { std::swap(r.rows()[3], r.rows()[4]); },
       "row-order /predicate/core/rows/4"},
      {"a row comes twice",
       [](EditedReceipt& r) { r.rows().insert(r.rows().begin() + 3, Json(r.rows()[3])); },
       "row-duplicate /predicate/core/rows/4"},
      {"a clause of nobody's",
       [](EditedReceipt& r) { r.row("text-exact/ids")["clause"] = "text-exactly"; },
       "row-unknown-clause " + ids + "/clause"},
      {"a case of nobody's", [](EditedReceipt& r) { r.row("text-exact/ids")["case"] = "idz"; },
       "row-unknown-case " + ids + "/case"},
      {"a fail called waived",
       [](EditedReceipt& r) { r.row("text-exact/ids")["outcome"] = "waived"; },
       "row-waives-itself " + ids + "/outcome"},
      {"a fail", [](EditedReceipt& r) { r.row("text-exact/ids")["outcome"] = "fail"; },
       "row-not-passed " + ids + "/outcome"},
      {"a fail without its sentence",
       [](EditedReceipt& r) { r.row("text-exact/ids")["outcome"] = "fail"; },
       "row-without-detail " + ids + "/detail"},
      {"a pass with a sentence",
       [](EditedReceipt& r) { r.row("text-exact/ids")["detail"] = "fine"; },
       "row-detail-on-pass " + ids + "/detail"},
      {"a pass that differs",
       [](EditedReceipt& r) { r.row("chunked-equals-whole/prompt,cut=16")["actual"] = kDigest; },
       "row-digests-differ " + cut + "/actual"},
      {"a pass of no digest",
       [](EditedReceipt& r) {
         r.row("chunked-equals-whole/prompt,cut=16")["actual"] = "";
         r.row("chunked-equals-whole/prompt,cut=16")["expected"] = "";
       },
       "row-without-digest " + cut + "/expected"},
      {"one run, two digests",
       [](EditedReceipt& r) {
         r.row("chunked-equals-whole/prompt,cut=16")["actual"] = kDigest;
         r.row("chunked-equals-whole/prompt,cut=16")["expected"] = kDigest;
       },
       "row-unlike " + cut},
      {"nothing counted",
       [](EditedReceipt& r) {
         r.row("chunked-equals-whole/prompt,cut=16")["counts"] = Json::object();
       },
       "row-counts-nothing " + cut + "/counts"},
      {"a count of zero",
       [](EditedReceipt& r) {
         r.row("chunked-equals-whole/prompt,cut=16")["counts"]["values"] = 0;
       },
       "row-count-zero " + cut + "/counts/values"},
      {"a count left out",
       [](EditedReceipt& r) {
         r.row("chunked-equals-whole/prompt,cut=16")["counts"].erase("positions");
       },
       "row-count-missing " + cut + "/counts/positions"},
      {"fewer positions",
       [](EditedReceipt& r) {
         r.row("chunked-equals-whole/prompt,cut=16")["counts"]["positions"] = 199;
       },
       "row-count-low " + cut + "/counts/positions"},
      {"a stuck model",
       [](EditedReceipt& r) {
         r.row("chunked-equals-whole/prompt,cut=16")["counts"]["distinct_ids"] = 1;
       },
       "row-count-low " + cut + "/counts/distinct_ids"},
      {"a flat model",
       [](EditedReceipt& r) {
         r.row("chunked-equals-whole/prompt,cut=16")["counts"]["entropy_millinats"] = 499;
       },
       "row-count-low " + cut + "/counts/entropy_millinats"},
      {"a count of nobody's",
       [](EditedReceipt& r) { r.row("chunked-equals-whole/prompt,cut=16")["counts"]["luck"] = 7; },
       "row-count-unknown " + cut + "/counts/luck"},
      {"positions of uneven size",
       [](EditedReceipt& r) {
         r.row("chunked-equals-whole/prompt,cut=16")["counts"]["values"] = 819201;
       },
       "row-count-contradiction " + cut + "/counts/values"},
      {"fewer rows than the case has",
       [](EditedReceipt& r) { r.row("row-invariance/linears,rows=16")["counts"]["rows"] = 1007; },
       "row-count-contradiction " + linears + "/counts/rows"},
      {"fewer linears than its neighbours",
       [](EditedReceipt& r) {
         r.row("row-invariance/linears,rows=16")["counts"]["rows"] = 992;
         r.row("row-invariance/linears,rows=16")["counts"]["linears"] = 62;
       },
       "row-unlike " + linears},
      {"a published truth exchanged",
       [](EditedReceipt& r) {
         r.row("text-exact/ids")["actual"] = kDigest;
         r.row("text-exact/ids")["expected"] = kDigest;
       },
       "row-not-as-published " + ids + "/expected"},
      {"fewer strings than are published",
       [](EditedReceipt& r) { r.row("text-exact/ids")["counts"]["strings"] = 1199; },
       "row-not-as-published " + ids + "/counts"},
      {"another contract", [](EditedReceipt& r) { r.core()["contract"]["sha256"] = kDigest; },
       "contract-digest /predicate/core/contract/sha256"},
      {"another contract version", [](EditedReceipt& r) { r.core()["contract"]["version"] = 2; },
       "contract-version /predicate/core/contract/version"},
      {"another register", [](EditedReceipt& r) { r.core()["tolerances"] = kDigest; },
       "tolerances-digest /predicate/core/tolerances"},
      {"another arithmetic",
       [](EditedReceipt& r) { r.core()["arithmetic"] = "cpu/1/0123456789ab"; },
       "arithmetic-id /predicate/core/arithmetic"},
      {"an arithmetic of another contract",
       [](EditedReceipt& r) { r.core()["arithmetic"] = "cuda/7/0123456789ab"; },
       "arithmetic-id /predicate/core/arithmetic"},
      {"an arithmetic no policy takes",
       [](EditedReceipt& r) { r.core()["arithmetic"] = "cuda/1/0123456789ab"; },
       "policy-arithmetic /predicate/core/arithmetic"},
      {"a GPU's arithmetic without its device",
       [](EditedReceipt& r) { r.core()["arithmetic"] = "cuda/1/0123456789ab"; },
       "context-device /predicate/context/engine"},
      {"a device beside the CPU",
       [](EditedReceipt& r) {
         r.context()["engine"]["device"] = {{"name", "a"},
                                            {"compute_capability", "9.0"},
                                            {"driver", "13.0"},
                                            {"runtime", "13.0"},
                                            {"fingerprint", kDigest}};
       },
       "context-device /predicate/context/engine"},
      {"a backend that is not the arithmetic's",
       [](EditedReceipt& r) { r.context()["engine"]["backend"] = "cuda"; },
       "context-backend /predicate/context/engine/backend"},
      {"another must-pass list", [](EditedReceipt& r) { r.core()["must_pass"]["L1"] = kDigest; },
       "must-pass-digest /predicate/core/must_pass/L1"},
      {"a must-pass list left out", [](EditedReceipt& r) { r.core()["must_pass"].erase("L0"); },
       "must-pass-missing /predicate/core/must_pass/L0"},
      {"a lower level with the rows of a higher",
       [](EditedReceipt& r) { r.core()["level"] = "L1"; },
       "must-pass-level /predicate/core/must_pass/L2"},
      {"another vector file", [](EditedReceipt& r) { r.core()["vectors"][0]["sha256"] = kDigest; },
       "vector-digest /predicate/core/vectors/0/sha256"},
      {"a vector file of another size",
       [](EditedReceipt& r) { r.core()["vectors"][0]["bytes"] = 1; },
       "vector-bytes /predicate/core/vectors/0/bytes"},
      {"a vector file of nobody's",
       [](EditedReceipt& r) { r.core()["vectors"][0]["name"] = "a.json"; },
       "vector-unknown /predicate/core/vectors/0/name"},
      {"a vector file left out", [](EditedReceipt& r) { r.core()["vectors"].erase(0); },
       "vector-missing /predicate/core/vectors"},
      {"vector files out of order",
       [](EditedReceipt& r) { std::swap(r.core()["vectors"][0], r.core()["vectors"][1]); },
       "file-order /predicate/core/vectors/1/name"},
      {"a vector file twice",
       [](EditedReceipt& r) {
         r.core()["vectors"].insert(r.core()["vectors"].begin(), Json(r.core()["vectors"][0]));
       },
       "file-duplicate /predicate/core/vectors/1/name"},
      {"a file name that leads out",
       [](EditedReceipt& r) { r.core()["checkpoint"]["files"][0]["name"] = "../config.json"; },
       "file-name /predicate/core/checkpoint/files/0/name"},
      {"no prompt", [](EditedReceipt& r) { r.core()["prompts"] = Json::array(); },
       "prompt-missing /predicate/core/prompts"},
      {"a prompt twice",
       [](EditedReceipt& r) { r.core()["prompts"].push_back(r.core()["prompts"][0]); },
       "prompt-duplicate /predicate/core/prompts/1/name"},
      {"a prompt of nobody's", [](EditedReceipt& r) { r.core()["prompts"][0]["name"] = "easy"; },
       "prompt-unknown /predicate/core/prompts/0/name"},
      {"another seed",
       [](EditedReceipt& r) { r.core()["prompts"][0]["seed"] = "0000000000000001"; },
       "prompt-seed /predicate/core/prompts/0/seed"},
      {"a shorter prompt", [](EditedReceipt& r) { r.core()["prompts"][0]["tokens"] = 100; },
       "prompt-tokens /predicate/core/prompts/0/tokens"},
      {"another rule", [](EditedReceipt& r) { r.core()["prompts"][0]["rule"] = "id i = 7"; },
       "prompt-rule /predicate/core/prompts/0/rule"},
      {"a rule with a bound of another spelling",
       [](EditedReceipt& r) {
         r.core()["prompts"][0]["rule"] = "id i = SplitMix64(seed) below 04096";
       },
       "prompt-rule /predicate/core/prompts/0/rule"},
      {"ids that the rule does not give",
       [](EditedReceipt& r) {
         r.core()["prompts"][0]["rule"] = "id i = SplitMix64(seed) below 4095";
       },
       "prompt-digest /predicate/core/prompts/0/sha256"},
      {"ids without logits",
       [](EditedReceipt& r) {
         r.core()["prompts"][0]["rule"] = "id i = SplitMix64(seed) below 4097";
       },
       "prompt-bound /predicate/core/prompts/0/rule"},
      {"another shard than the subject",
       [](EditedReceipt& r) { r.statement()["subject"][0]["digest"]["sha256"] = kDigest; },
       "subject-digest /subject/0/digest/sha256"},
      {"a subject of nobody's",
       [](EditedReceipt& r) { r.statement()["subject"][0]["name"] = "other.safetensors"; },
       "subject-unknown /subject/0/name"},
      {"a subject left out",
       [](EditedReceipt& r) { r.statement()["subject"][0] = r.statement()["subject"][1]; },
       "subject-missing /subject"},
      {"a subject twice",
       [](EditedReceipt& r) { r.statement()["subject"].push_back(r.statement()["subject"][0]); },
       "subject-duplicate /subject/2/name"},
      {"another program than the subject",
       [](EditedReceipt& r) { r.context()["engine"]["binary_sha256"] = kDigest; },
       "subject-digest /subject/1/digest/sha256"},
      {"a checkpoint of no shard",
       [](EditedReceipt& r) {
         r.core()["checkpoint"]["files"].erase(1);
         r.statement()["subject"].push_back(r.statement()["subject"][0]);
       },
       "subject-without-shards /predicate/core/checkpoint/files"},
      {"a verdict that the rows do not give",
       [](EditedReceipt& r) { r.context()["verdict"]["outcome"] = "fail"; },
       "context-verdict /predicate/context/verdict/outcome"},
      {"missing cases that are there",
       [](EditedReceipt& r) { r.context()["verdict"]["missing"] = {"text-exact/ids"}; },
       "context-verdict /predicate/context/verdict/missing"},
      {"finished before it started",
       [](EditedReceipt& r) { r.context()["times"]["finished"] = "2026-01-01T00:00:00Z"; },
       "context-times /predicate/context/times/finished"},
      {"a day that is not",
       [](EditedReceipt& r) { r.context()["times"]["started"] = "2026-02-30T00:00:00Z"; },
       "context-times /predicate/context/times/started"},
      {"more seconds than passed",
       [](EditedReceipt& r) { r.context()["times"]["seconds"] = 86400; },
       "context-times /predicate/context/times/seconds"},
  };
  for (const Forgery& forgery : forgeries) ExpectDenied(Unpublished(), forgery);
}

TEST(Verify, ForgeriesOfAGoldenModelAreDeniedByItsPins) {
  const std::string logits = "model-golden/scribe-11m-exl3,run=long,compared=logits";
  EditedReceipt base = Scribe();
  const std::string golden = At(base, logits);
  const std::string cut = At(base, "chunked-equals-whole/prompt,cut=1");
  const std::vector<Forgery> forgeries = {
      {"a drift above what is allowed",
       [&](EditedReceipt& r) { r.row(logits)["counts"]["worst_rms_over_std_e9"] = 10000001; },
       "tolerance-exceeded " + golden + "/counts/worst_rms_over_std_e9"},
      {"an allowance of its own",
       [&](EditedReceipt& r) {
         r.row(logits)["counts"]["allowed_rms_over_std_e9"] = 90000000;
         r.row(logits)["counts"]["worst_rms_over_std_e9"] = 80000000;
       },
       "tolerance-register " + golden + "/counts/allowed_rms_over_std_e9"},
      {"a measure left out",
       [&](EditedReceipt& r) { r.row(logits)["counts"].erase("mean_kl_nat_e9"); },
       "row-count-missing " + golden + "/counts/mean_kl_nat_e9"},
      {"an allowance left out",
       [&](EditedReceipt& r) { r.row(logits)["counts"].erase("allowed_kl_nat_e9"); },
       "row-count-missing " + golden + "/counts/allowed_kl_nat_e9"},
      {"a drift that is not the published one",
       [&](EditedReceipt& r) { r.row(logits)["counts"]["worst_rms_over_std_e9"] = 1; },
       "row-not-as-published " + golden + "/counts"},
      {"a digest where a tolerance decides",
       [&](EditedReceipt& r) {
         r.row(logits)["expected"] = kDigest;
         r.row(logits)["actual"] = kDigest;
       },
       "row-digest-unknown " + golden + "/expected"},
      {"golden rows left out", [&](EditedReceipt& r) { r.EraseRow(logits); },
       "row-missing /predicate/core/rows"},
      {"other bits, everywhere alike",
       [](EditedReceipt& r) {
         for (Json& row : r.rows()) {
           if (row["counts"].contains("positions")) row["expected"] = row["actual"] = kDigest;
         }
       },
       "row-not-as-published " + cut + "/expected"},
      {"another cache type", [](EditedReceipt& r) { r.core()["settings"]["kv"] = "fp8"; },
       "row-not-as-published " + cut + "/expected"},
      {"a size that is not the file's",
       [](EditedReceipt& r) { r.core()["vectors"][2]["bytes"] = 7; },
       "core-not-as-published /predicate/core_sha256"},
      {"golden rows of another checkpoint",
       [](EditedReceipt& r) { r.core()["checkpoint"]["files"][0]["sha256"] = kDigest; },
       "row-unknown-case " + golden + "/case"},
      {"another prompt",
       [](EditedReceipt& r) {
         r.core()["prompts"][0]["rule"] = "id i = SplitMix64(seed) below 1000";
         r.core()["prompts"][0]["sha256"] =
             "c0d638541f985f5d2902fc4edcd2d65984df63bee2a219f0dc54e98ed18720db";
       },
       "prompts-not-as-published /predicate/core/prompts"},
  };
  for (const Forgery& forgery : forgeries) ExpectDenied(Scribe(), forgery);
}

TEST(Verify, DigestsThatNobodyRecomputedDeny) {
  EditedReceipt receipt = Scribe();
  receipt.core()["settings"]["kv"] = "fp8";
  EXPECT_TRUE(Has(receipt.Verify(), "core-digest"));
  receipt = Scribe();
  receipt.context()["host"]["cpu"] = "a faster one";
  EXPECT_EQ(ReasonsOf(receipt.Verify()),
            std::vector<std::string>{"context-digest /predicate/context_sha256"});
  receipt = Scribe();
  receipt.core()["checkpoint"]["files"][3]["sha256"] = kDigest;
  receipt.SealCore();
  EXPECT_TRUE(Has(receipt.Verify(), "files-digest"));
}

TEST(Verify, TheFilesNameIsPartOfTheClaim) {
  const PublishedReceipt published = PublishedReceipts().front();
  const ReceiptVerdict verdict = VerifyBytes("L2.cpu.000000000000.intoto.jsonl", published.bytes);
  EXPECT_EQ(ReasonsOf(verdict), std::vector<std::string>{"file-name "});
}

TEST(Verify, ALevelWithoutAListIsUnknown) {
  EditedReceipt receipt = Scribe();
  receipt.core()["level"] = "L9";
  receipt.SealAll();
  EXPECT_FALSE(receipt.Verify().reasons.empty());
}

// The other direction: a receipt that says itself that it failed holds together, and is denied for
// that alone, with the outcome of its worst row.
TEST(Verify, AnHonestFailureIsDeniedForItsRowsAlone) {
  EditedReceipt receipt = Unpublished();
  Json& row = receipt.row("chunked-equals-whole/prompt,cut=16");
  row["outcome"] = "fail";
  row["actual"] = kDigest;
  row["detail"] = "the logits of position 3: the bits differ";
  receipt.SealWithVerdict("fail", {});
  ReceiptVerdict verdict = receipt.Verify();
  ASSERT_EQ(verdict.reasons.size(), 1u);
  EXPECT_EQ(verdict.reasons[0].code, "row-not-passed");
  EXPECT_EQ(verdict.level_reached, "L1");
  EXPECT_EQ(ExitCode(verdict.outcome), 1);

  receipt.row("chunked-equals-whole/prompt,cut=16")["outcome"] = "resourceError";
  receipt.SealWithVerdict("resourceError", {});
  verdict = receipt.Verify();
  EXPECT_EQ(ResultWord(verdict.outcome), "UNDECIDED");
  EXPECT_EQ(ExitCode(verdict.outcome), 3);
}

TEST(Verify, AHonestlyMissingRowIsStillMissing) {
  EditedReceipt receipt = Unpublished();
  receipt.EraseRow("text-exact/ids");
  receipt.SealWithVerdict("fail", {"text-exact/ids"});
  const ReceiptVerdict verdict = receipt.Verify();
  EXPECT_EQ(ReasonsOf(verdict), std::vector<std::string>{"row-missing /predicate/core/rows"});
  EXPECT_EQ(verdict.outcome, Outcome::kFail);
  EXPECT_EQ(verdict.level_reached, "L0");
}

// What no document can show, so that nobody believes it does: the machine and its speed, and files
// that no published receipt pins, are the word of who wrote them.
TEST(Verify, TheContextIsTheWordOfItsWriter) {
  EditedReceipt receipt = Scribe();
  receipt.context()["host"]["cpu"] = "a faster one";
  receipt.SealAll();
  EXPECT_EQ(receipt.Verify().outcome, Outcome::kPass);
}

}  // namespace
}  // namespace hallmark::verify
