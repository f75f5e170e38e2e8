// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "conformance/harness/paths.h"
#include "engine/base/sha256.h"
#include "engine/text/tokenizer.h"
#include "engine/text/utf8.h"

namespace hallmark {
namespace {

// What the reference gives; plan.md says how it was made.
struct Plane {
  uint32_t number;
  size_t ids;
  const char* sha256;
};

class EveryCodePoint : public testing::TestWithParam<Plane> {};

TEST_P(EveryCodePoint, InTenSurroundingsGivesTheReferencesIds) {
  const auto tokenizer = Tokenizer::Open(GoldenPath("models/scribe-11m-exl3/tokenizer.json"));
  ASSERT_TRUE(tokenizer.has_value()) << tokenizer.error().ToString();
  Sha256 hash;
  size_t count = 0;
  const uint32_t first = GetParam().number << 16;
  for (uint32_t value = first; value < first + 0x10000; ++value) {
    if (value >= 0xD800 && value < 0xE000) continue;
    std::string x;
    AppendUtf8(value, &x);
    const std::string text =
        "a" + x + "1" + x + " " + x + "\n" + x + "!" + x + "\u0316" + x + "\u0301\u0334'" + x;
    const auto ids = tokenizer->Encode(text);
    ASSERT_TRUE(ids.has_value());
    hash.Update(std::as_bytes(std::span(*ids)));
    count += ids->size();
  }
  EXPECT_EQ(count, GetParam().ids);
  EXPECT_EQ(Hex(hash.Finish()), GetParam().sha256);
}

INSTANTIATE_TEST_SUITE_P(
    Reference, EveryCodePoint,
    testing::Values(
        Plane{0, 2080433, "97c49d38f73419afa6095b095c46528446a893d228c558624930e9d8a7597077"},
        Plane{1, 2622056, "5248ee3f6b10da5a5297c73c1c2db00444dafc0164a9b19d67119fc513fa1e89"},
        Plane{2, 2618381, "a18940fe017458e9eaa60f16dbc18a886c644c71951853c228ab3158815c4c10"},
        Plane{3, 2621440, "76d48f0b8b19f8d2de47ac56d11043503a1fc5a754d3f3cbe2f446b2fe4aa38c"},
        Plane{14, 2621440, "4f56ade8620e67414668accd3d1661e12c70cb266d36a72ac3c94c4ad06c60b8"},
        Plane{15, 2621440, "1494546d796faa79764f3b6b8abd8598a693a39e1713cf288aa94e51372b755c"},
        Plane{16, 2621440, "2d79683f1e0c1baa4ba3e5d0062a96d3936bcdb89c707abc7cd4be4aad4479ea"}),
    [](const auto& info) { return "Plane" + std::to_string(info.param.number); });

}  // namespace
}  // namespace hallmark
