// SPDX-License-Identifier: Apache-2.0
#include "receipts/verify/compare.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "receipts/verify/edited_receipt.h"

namespace hallmark::verify {
namespace {

using Texts = std::vector<std::string>;

EditedReceipt Scribe() { return EditedReceipt(PublishedReceiptOf("scribe-11m-exl3")); }

TEST(Compare, TheSameCoreIsEqualWhateverItsContext) {
  EditedReceipt other = Scribe();
  other.context()["host"]["cpu"] = "another";
  const Comparison comparison = CompareReceipts(Scribe().core(), other.core());
  EXPECT_EQ(comparison.result, Comparison::Result::kEqual);
  EXPECT_EQ(ExitCodeOf(comparison), 0);
  EXPECT_EQ(Json(comparison.core_sha256[0]), Scribe().statement()["predicate"]["core_sha256"]);
}

TEST(Compare, RowsThatDifferAreListedWithBothSides) {
  EditedReceipt a = Scribe();
  EditedReceipt b = Scribe();
  a.EraseRow("text-exact/ids");
  b.EraseRow("text-exact/stream");
  b.row("sampler-exact/draws")["actual"] = std::string(64, 'a');
  b.row("sampler-exact/draws")["outcome"] = "fail";
  const Comparison comparison = CompareReceipts(a.core(), b.core());
  EXPECT_EQ(comparison.result, Comparison::Result::kDiffers);
  EXPECT_EQ(ExitCodeOf(comparison), 1);
  EXPECT_EQ(comparison.only_a, Texts{"text-exact/stream"});
  EXPECT_EQ(comparison.only_b, Texts{"text-exact/ids"});
  ASSERT_EQ(comparison.rows.size(), 1u);
  EXPECT_EQ(comparison.rows[0].name, "sampler-exact/draws");
  EXPECT_EQ((*comparison.rows[0].b)["actual"], Json(std::string(64, 'a')));
  EXPECT_NE(ComparisonText(comparison).find("aaaaaaaaaaaa"), std::string::npos);
}

TEST(Compare, AnythingButRowsMakesThemNotComparable) {
  const auto unlike = [](const auto& edit) {
    EditedReceipt other = Scribe();
    edit(other.core());
    // Differing rows must not be told where nothing can be compared.
    other.EraseRow("text-exact/ids");
    const Comparison comparison = CompareReceipts(Scribe().core(), other.core());
    EXPECT_EQ(comparison.result, Comparison::Result::kNotComparable);
    EXPECT_EQ(ExitCodeOf(comparison), 3);
    EXPECT_TRUE(comparison.only_a.empty() && comparison.rows.empty());
    return comparison.unlike;
  };
  EXPECT_EQ(unlike([](Json& c) { c["arithmetic"] = "cuda/1/0123456789ab"; }), Texts{"arithmetic"});
  EXPECT_EQ(unlike([](Json& c) { c["level"] = "L1"; }), Texts{"level"});
  EXPECT_EQ(unlike([](Json& c) { c["settings"]["kv"] = "fp8"; }), Texts{"settings"});
  EXPECT_EQ(unlike([](Json& c) { c["checkpoint"]["files"][0]["bytes"] = 1; }), Texts{"checkpoint"});
  EXPECT_EQ(unlike([](Json& c) { c["drafter"] = c["checkpoint"]; }), Texts{"drafter"});
  EXPECT_EQ(unlike([](Json& c) { c["tolerances"] = "x"; }), Texts{"tolerances"});
}

TEST(Compare, TakesOnlyReceiptsWhoseCoreIsTheOneTheyName) {
  const PublishedReceipt published = PublishedReceipts().front();
  ASSERT_TRUE(ReadCore(BuiltInKnowledge(), published.name, published.bytes).has_value());
  EditedReceipt edited(published);
  edited.core()["checkpoint"]["files"][0]["bytes"] = 1;
  const auto core = ReadCore(BuiltInKnowledge(), "x.intoto.jsonl", edited.Bytes());
  ASSERT_FALSE(core.has_value());
  EXPECT_EQ(core.error().code, Code::kMalformed);
  EXPECT_EQ(core.error().where.pointer, "/predicate/core_sha256");
  EXPECT_EQ(ReadCore(BuiltInKnowledge(), "x.intoto.jsonl", "{}\n").error().where.pointer, "/_type");
}

}  // namespace
}  // namespace hallmark::verify
