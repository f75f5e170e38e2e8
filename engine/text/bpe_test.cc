// SPDX-License-Identifier: Apache-2.0
#include "engine/text/bpe.h"

#include <gtest/gtest.h>

#include <numeric>
#include <string>

namespace hallmark {
namespace {

using Ids = std::vector<int32_t>;

std::array<int32_t, 256> Identity() {
  std::array<int32_t, 256> ids{};
  std::iota(ids.begin(), ids.end(), 0);
  return ids;
}

Ids Encode(const Bpe& bpe, std::string_view piece) {
  Bpe::Scratch scratch;
  Ids ids;
  bpe.Encode(piece, &scratch, &ids);
  return ids;
}

TEST(Bpe, WithoutMergesGivesOneTokenPerByte) {
  const Bpe bpe(Identity(), {}, 256);
  EXPECT_EQ(Encode(bpe, ""), Ids{});
  EXPECT_EQ(Encode(bpe, "a"), Ids{'a'});
  EXPECT_EQ(Encode(bpe, "ab\xFF"), (Ids{'a', 'b', 255}));
}

TEST(Bpe, TakesTheLowestRankFirst) {
  // b c outranks a b, so abc is a + bc although ab stands further left.
  const Bpe bpe(Identity(), {{'b', 'c', 256}, {'a', 'b', 257}}, 258);
  EXPECT_EQ(Encode(bpe, "abc"), (Ids{'a', 256}));
  EXPECT_EQ(Encode(bpe, "ab"), (Ids{257}));
  EXPECT_EQ(Encode(bpe, "ababc"), (Ids{257, 'a', 256}));
}

TEST(Bpe, TakesTheLeftmostAmongEqualRanks) {
  const Bpe bpe(Identity(), {{'a', 'a', 256}}, 257);
  EXPECT_EQ(Encode(bpe, "aaa"), (Ids{256, 'a'}));
  EXPECT_EQ(Encode(bpe, "aaaaa"), (Ids{256, 256, 'a'}));
}

TEST(Bpe, LooksAgainAfterAMergeAtALowerRank) {
  // The pair (ab, c) has rank 0 but exists only once a b, rank 1, is merged; it then comes before
  // c d, rank 2.
  const Bpe bpe(Identity(), {{256, 'c', 257}, {'a', 'b', 256}, {'c', 'd', 258}}, 259);
  EXPECT_EQ(Encode(bpe, "abcd"), (Ids{257, 'd'}));
}

TEST(Bpe, DoesNotMergeAPairWhoseHalfIsGone) {
  // In bab, a b wins and leaves b a behind as a stale candidate.
  const Bpe bpe(Identity(), {{'a', 'b', 256}, {'b', 'a', 257}}, 258);
  EXPECT_EQ(Encode(bpe, "bab"), (Ids{'b', 256}));
  EXPECT_EQ(Encode(bpe, "baba"), (Ids{'b', 256, 'a'}));
}

TEST(Bpe, ScratchCarriesNothingFromOnePieceToTheNext) {
  const Bpe bpe(Identity(), {{'a', 'a', 256}, {256, 256, 257}}, 258);
  Bpe::Scratch scratch;
  Ids ids;
  bpe.Encode("aaaaaaaa", &scratch, &ids);
  bpe.Encode("ab", &scratch, &ids);
  bpe.Encode("aa", &scratch, &ids);
  EXPECT_EQ(ids, (Ids{257, 257, 'a', 'b', 256}));
}

}  // namespace
}  // namespace hallmark
