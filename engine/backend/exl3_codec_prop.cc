// SPDX-License-Identifier: Apache-2.0
// Clause: decode-exact
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <array>
#include <vector>

#include "engine/backend/exl3_codec.h"

namespace hallmark {
namespace {

std::array<uint16_t, kTileWeights> StatesOf(const uint16_t* words, int k2) {
  std::array<uint16_t, kTileWeights> states;
  for (int p = 0; p < kTileWeights; ++p) {
    states[static_cast<size_t>(p)] = StateAt(words, k2, p);
  }
  return states;
}

// Every rate in every round, so that none depends on luck.
RC_GTEST_PROP(Exl3CodecRing, UnpackingThenPackingRestoresAnyTileOfAnyRate, ()) {
  int rates = 0;
  for (const Exl3Rate rate : AllExl3Rates()) {
    const auto words = *rc::gen::container<std::vector<uint16_t>>(
        static_cast<size_t>(TileWords(rate.k2)), rc::gen::arbitrary<uint16_t>());
    const auto states = StatesOf(words.data(), rate.k2);
    RC_ASSERT(IsRing(states, rate.k2));
    std::vector<uint16_t> packed(words.size(), 0xFFFF);
    PackStates(states, rate.k2, packed.data());
    RC_ASSERT(packed == words);
    ++rates;
  }
  RC_ASSERT(rates == 27);
}

RC_GTEST_PROP(Exl3CodecRing, PackingThenUnpackingRestoresAnyRingOfStates, ()) {
  for (const Exl3Rate rate : AllExl3Rates()) {
    // A ring made from each position's own bits alone.
    const auto bits =
        *rc::gen::container<std::vector<uint16_t>>(kTileWeights, rc::gen::arbitrary<uint16_t>());
    std::array<uint16_t, kTileWeights> states{};
    uint32_t history = 0;
    for (int p = 0; p < 2 * kTileWeights; ++p) {  // the second lap closes the ring
      const size_t at = static_cast<size_t>(p % kTileWeights);
      const int own = OwnBits(rate.k2, p % kTileWeights);
      history = (history << own) | (bits[at] & ((1u << own) - 1));
      states[at] = static_cast<uint16_t>(history);
    }
    RC_ASSERT(IsRing(states, rate.k2));
    std::vector<uint16_t> words(static_cast<size_t>(TileWords(rate.k2)));
    PackStates(states, rate.k2, words.data());
    RC_ASSERT(StatesOf(words.data(), rate.k2) == states);
  }
}

}  // namespace
}  // namespace hallmark
