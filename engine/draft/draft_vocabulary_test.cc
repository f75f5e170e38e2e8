// SPDX-License-Identifier: Apache-2.0
#include "engine/draft/draft_vocabulary.h"

#include <gtest/gtest.h>

namespace hallmark {
namespace {

std::vector<std::pair<int64_t, int64_t>> ColumnsOf(std::vector<IdSpan> spans, int64_t vocab) {
  const auto vocabulary = DraftVocabulary::Make(spans, vocab);
  std::vector<std::pair<int64_t, int64_t>> columns;
  if (!vocabulary) return columns;
  for (const ColumnSpan& span : vocabulary->columns()) columns.emplace_back(span.first, span.count);
  return columns;
}
using Columns = std::vector<std::pair<int64_t, int64_t>>;

TEST(DraftVocabulary, NoSpansAreTheWholeHead) {
  const auto vocabulary = DraftVocabulary::Make({}, 1000);
  ASSERT_TRUE(vocabulary.has_value());
  EXPECT_TRUE(vocabulary->whole());
  EXPECT_EQ(vocabulary->size(), 1000);
  EXPECT_EQ(vocabulary->IdOf(999), 999);
}

TEST(DraftVocabulary, SpansAreRoundedOutward) {
  // The published spans of the 27B: the second begins at 247936, so that ids 248044 to 248063, the
  // end of a turn among them, can be drafted.
  EXPECT_EQ(ColumnsOf({{0, 98304}, {248032, 248320}}, 248320),
            (Columns{{0, 98304}, {247936, 384}}));
  EXPECT_EQ(ColumnsOf({{130, 131}}, 1000), (Columns{{128, 128}}));
  EXPECT_EQ(ColumnsOf({{999, 1000}}, 1000), (Columns{{896, 104}}));
}

TEST(DraftVocabulary, SpansMeetAndMayComeInAnyOrder) {
  EXPECT_EQ(ColumnsOf({{300, 400}, {5, 10}}, 1000), (Columns{{0, 128}, {256, 256}}));
  EXPECT_EQ(ColumnsOf({{100, 129}, {256, 300}, {1, 2}}, 1000), (Columns{{0, 384}}));
  EXPECT_EQ(ColumnsOf({{0, 700}, {100, 200}}, 1000), (Columns{{0, 768}}));
}

TEST(DraftVocabulary, ColumnsKnowTheirIds) {
  const auto vocabulary = DraftVocabulary::Make(std::vector<IdSpan>{{0, 1}, {512, 513}}, 1000);
  ASSERT_TRUE(vocabulary.has_value());
  EXPECT_FALSE(vocabulary->whole());
  EXPECT_EQ(vocabulary->size(), 256);
  EXPECT_EQ(vocabulary->IdOf(127), 127);
  EXPECT_EQ(vocabulary->IdOf(128), 512);
  EXPECT_EQ(vocabulary->IdOf(255), 639);
}

TEST(DraftVocabulary, ASpanThatIsNoneIsRefused) {
  for (const IdSpan span : {IdSpan{5, 5}, IdSpan{6, 5}, IdSpan{-1, 5}, IdSpan{0, 1001}}) {
    const auto vocabulary = DraftVocabulary::Make(std::vector<IdSpan>{span}, 1000);
    ASSERT_FALSE(vocabulary.has_value());
    EXPECT_EQ(vocabulary.error().code, Code::kOutOfRange);
    EXPECT_EQ(vocabulary.error().where.flag, "draft vocabulary");
  }
}

}  // namespace
}  // namespace hallmark
