// SPDX-License-Identifier: Apache-2.0
#include "receipts/emit/summary.h"

#include <gtest/gtest.h>

namespace hallmark {
namespace {

ReceiptCore CoreWith(Outcome outcome) {
  return {.level = Level::kL2,
          .kv = "bf16",
          .arithmetic = "cpu/1/0123456789ab",
          .rows = {{.clause = "sampler-exact",
                    .case_name = "draws",
                    .outcome = outcome,
                    .counts = {{"values", 400}},
                    .detail = outcome == Outcome::kPass ? "" : "draw 7: 1 differ"}}};
}

TEST(SummaryText, SaysWhatWasShownAndWhatWasNot) {
  const std::string text = SummaryText({"models/a", "cpu (avx2, 2 threads)", 1.0},
                                       CoreWith(Outcome::kPass), "feed", {Outcome::kPass, {}});
  for (const char* part :
       {"models/a", "level L2", "conforming", "sampler-exact", "1 of 1 cases", "400 values",
        "does not show", "No reference logits", "feed", "cpu/1/0123456789ab"}) {
    EXPECT_NE(text.find(part), std::string::npos) << part << "\n" << text;
  }
  EXPECT_EQ(text.find("NOT"), std::string::npos);
}

TEST(SummaryText, NamesEveryCaseThatDidNotPassAndEveryMissingOne) {
  const std::string text =
      SummaryText({}, CoreWith(Outcome::kFail), "feed", {Outcome::kFail, {"text-exact/ids"}});
  for (const char* part : {"NOT conforming", "FAIL", "fail sampler-exact/draws: draw 7: 1 differ",
                           "missing text-exact/ids"}) {
    EXPECT_NE(text.find(part), std::string::npos) << part << "\n" << text;
  }
}

TEST(SummaryText, AnUndecidedCaseIsNeitherGoodNorBad) {
  const std::string text =
      SummaryText({}, CoreWith(Outcome::kResourceError), "feed", {Outcome::kResourceError, {}});
  EXPECT_NE(text.find("could not decide"), std::string::npos);
}

}  // namespace
}  // namespace hallmark
