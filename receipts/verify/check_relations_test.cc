// SPDX-License-Identifier: Apache-2.0
// Forgeries that know every digest's rule and are denied by what their own counts, sizes, digests
// and settings say of each other: a receipt at L3 of a checkpoint that nobody published.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <nlohmann/json.hpp>
#include <set>

#include "engine/base/sha256.h"
#include "receipts/verify/edited_receipt.h"
#include "receipts/verify/knowledge.h"

namespace hallmark::verify {
namespace {

const std::string kDigest(64, 'b');

// A published one under other digests of its files, without the rows of golden models.
EditedReceipt Unpublished() {
  for (const PublishedReceipt& published : PublishedReceipts()) {
    EditedReceipt receipt(published);
    if (receipt.core()["level"] != "L3" || receipt.core()["settings"]["kv"] != "bf16") continue;
    for (const char* list : {"checkpoint", "drafter"}) {
      for (Json& file : receipt.core()[list]["files"]) {
        file["sha256"] = Sha256Hex(list + file["name"].get<std::string>());
        const std::string subject =
            (list == std::string("drafter") ? "drafter/" : "") + file["name"].get<std::string>();
        for (Json& named : receipt.statement()["subject"]) {
          if (named["name"] == subject) named["digest"]["sha256"] = file["sha256"];
        }
      }
    }
    std::set<std::string> golden;
    for (const LevelList& level : BuiltInKnowledge().levels) {
      for (const GoldenModel& model : level.golden_models) {
        golden.insert(model.cases.begin(), model.cases.end());
      }
    }
    Json rows = Json::array();
    for (const Json& row : receipt.rows()) {
      const auto name = row["clause"].get<std::string>() + "/" + row["case"].get<std::string>();
      if (!golden.contains(name)) rows.push_back(row);
    }
    receipt.rows() = rows;
    receipt.SealAll();
    return receipt;
  }
  ADD_FAILURE() << "no receipt at L3 is published";
  return EditedReceipt(PublishedReceipts().front());
}

// The codes of what is found after an edit, each once.
std::set<std::string> CodesOf(const std::function<void(EditedReceipt&)>& edit) {
  EditedReceipt receipt = Unpublished();
  edit(receipt);
  receipt.SealAll();
  const ReceiptVerdict verdict = receipt.Verify();
  std::set<std::string> codes;
  for (const Reason& reason : verdict.reasons) codes.insert(reason.code);
  EXPECT_EQ(verdict.outcome == Outcome::kPass, codes.empty());
  return codes;
}

using Codes = std::set<std::string>;

TEST(Relations, TheReceiptThatIsEditedPasses) {
  EXPECT_EQ(CodesOf([](EditedReceipt&) {}), Codes{});
}

TEST(Relations, CountsThatContradictEachOther) {
  struct Count {
    const char* row;
    const char* count;
    uint64_t value;
    const char* code = "row-count-contradiction";
  };
  for (const Count& wrong : std::vector<Count>{
           {"drafted-equals-undrafted/replayed,sampling=all", "drafted", 33},  // 34 are accepted
           {"drafted-equals-undrafted/replayed,sampling=all", "accepted", 35},
           {"drafted-equals-undrafted/replayed,sampling=all", "rounds", 12},
           {"drafted-equals-undrafted/replayed,sampling=all", "values", 196657},
           {"drafted-equals-undrafted/replayed,sampling=all", "values", 48,
            "row-unlike"},  // no logits
           {"drafted-equals-undrafted/drafter,sampling=all", "rounds", 48},
           {"drafted-equals-undrafted/both,sampling=all", "copied", 34},
           {"drafted-equals-undrafted/both,sampling=all", "drafted", 32},
           {"drafted-equals-undrafted/drafts-land", "accepted", 52},
           {"copy-gate-neutral/copies,gate=5,sampling=greedy", "copied", 32},
           {"copy-gate-neutral/copies,gate=5,sampling=greedy", "drafted", 1},
           {"commit-equals-serial/window,rows=16,position=56", "commits", 16},
           {"slice-equals-parent/head,columns=first,rows=17", "columns", 64},
           {"slice-equals-parent/head,columns=first,rows=17", "values", 2177},
           {"format-accept/checkpoint", "used_tensors", 257}}) {
    const Codes codes =
        CodesOf([&](EditedReceipt& r) { r.row(wrong.row)["counts"][wrong.count] = wrong.value; });
    EXPECT_EQ(codes, Codes{wrong.code}) << wrong.row << " " << wrong.count << " " << wrong.value;
  }
}

TEST(Relations, RowsThatShowOneThingDifferently) {
  for (const char* name : {"drafted-equals-undrafted/replayed,sampling=all",
                           "drafted-equals-undrafted/both,sampling=minp05",
                           "copy-gate-neutral/copies,gate=20,sampling=k20p95",
                           "resumed-equals-fresh/prompt,kept=257,tail=16",
                           "failure-isolation/neighbour,fate=refused"}) {
    EXPECT_EQ(CodesOf([&](EditedReceipt& r) {
                r.row(name)["expected"] = r.row(name)["actual"] = kDigest;
              }),
              Codes{"row-unlike"})
        << name;
  }
  // Nothing else shows this prompt.
  EXPECT_EQ(CodesOf([&](EditedReceipt& r) {
              Json& row = r.row("resumed-equals-fresh/prompt,kept=100,tail=17");
              row["expected"] = row["actual"] = kDigest;
            }),
            Codes{});
  EXPECT_EQ(CodesOf([&](EditedReceipt& r) {
              r.row("concurrent-equals-solo/staggered,streams=4")["counts"]["ids"] = 57;
            }),
            Codes{"row-unlike"});
}

TEST(Relations, SizesThatTheDigestsOrTheRowsDeny) {
  EXPECT_EQ(CodesOf([](EditedReceipt& r) { r.core()["drafter"]["files"][0]["bytes"] = 0; }),
            Codes{"file-bytes"});
  EXPECT_EQ(CodesOf([](EditedReceipt& r) {
              r.core()["checkpoint"]["files"][0]["sha256"] = Sha256Hex("");
            }),
            Codes{"file-bytes"});
  EXPECT_EQ(CodesOf([](EditedReceipt& r) {
              for (Json& file : r.core()["checkpoint"]["files"]) file["bytes"] = 1000;
            }),
            Codes{"file-bytes"});
}

TEST(Relations, SettingsThatDoNotFitTheDrafter) {
  const auto set = [](const char* member, const Json& value) {
    return CodesOf([&](EditedReceipt& r) { r.core()["settings"][member] = value; });
  };
  EXPECT_EQ(set("drafting", "off"), Codes{"settings-drafter"});
  EXPECT_EQ(set("draft_vocabulary", {{0, 128}, {7, 7}}), Codes{"settings-drafter"});
  EXPECT_EQ(set("draft_vocabulary", {{9, 7}}), Codes{"settings-drafter"});
  EXPECT_EQ(set("draft_vocabulary", {{0, uint64_t{1} << 31}}), Codes{"settings-drafter"});
  EXPECT_EQ(set("draft_vocabulary", {{7, 9}, {0, 4096}}), Codes{});
  for (const char* member : {"draft_vocabulary", "drafter_weights"}) {
    EXPECT_EQ(CodesOf([&](EditedReceipt& r) { r.core()["settings"].erase(member); }),
              Codes{"settings-drafter"});
  }
  EditedReceipt undrafted(PublishedReceiptOf("scribe-11m-exl3"));
  undrafted.core()["settings"]["drafting"] = "fixed-window";
  undrafted.SealAll();
  const std::vector<std::string> reasons = ReasonsOf(undrafted.Verify());
  EXPECT_TRUE(std::find(reasons.begin(), reasons.end(),
                        "settings-drafter /predicate/core/settings/drafting") != reasons.end());
}

}  // namespace
}  // namespace hallmark::verify
