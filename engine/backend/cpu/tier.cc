// SPDX-License-Identifier: Apache-2.0
#include "engine/backend/cpu/tier.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>
#include <string>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace hallmark {
namespace {

constexpr std::array<CpuTier, 4> kAllTiers = {CpuTier::kScalar, CpuTier::kAvx2, CpuTier::kAvx512,
                                              CpuTier::kAvx512Fp16};

#if defined(__x86_64__)

// Which register files the operating system saves (XCR0); 0 without OSXSAVE.
uint64_t SavedState(uint32_t leaf1_ecx) {
  constexpr uint32_t kOsXsave = 1u << 27;
  if ((leaf1_ecx & kOsXsave) == 0) return 0;
  uint32_t low = 0;
  uint32_t high = 0;
  __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return (uint64_t{high} << 32) | low;
}

CpuTier Detect() {
  uint32_t eax = 0, ebx = 0, ecx = 0, edx = 0;
  if (__get_cpuid(1, &eax, &ebx, &ecx, &edx) == 0) return CpuTier::kScalar;
  const uint32_t leaf1_ecx = ecx;
  if (__get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx) == 0) return CpuTier::kScalar;
  const auto has = [](uint32_t word, std::initializer_list<int> bits) {
    return std::all_of(bits.begin(), bits.end(), [&](int bit) { return (word >> bit) & 1u; });
  };
  const uint64_t saved = SavedState(leaf1_ecx);
  const bool avx2 = (saved & 0x6) == 0x6 && has(leaf1_ecx, {12, 28, 29}) &&  // FMA, AVX, F16C
                    has(ebx, {3, 5, 8});                                     // BMI1, AVX2, BMI2
  if (!avx2) return CpuTier::kScalar;
  const bool avx512 = (saved & 0xE6) == 0xE6 && has(ebx, {16, 17, 30, 31}) &&  // F, DQ, BW, VL
                      has(ecx, {1, 6, 11});                                    // VBMI, VBMI2, VNNI
  if (!avx512) return CpuTier::kAvx2;
  return has(edx, {23}) ? CpuTier::kAvx512Fp16 : CpuTier::kAvx512;
}

#else

CpuTier Detect() { return CpuTier::kScalar; }

#endif

CpuTier BestTier() {
  static const CpuTier best = Detect();
  return best;
}

}  // namespace

std::string_view CpuTierName(CpuTier tier) {
  switch (tier) {
    case CpuTier::kScalar:
      return "scalar";
    case CpuTier::kAvx2:
      return "avx2";
    case CpuTier::kAvx512:
      return "avx512";
    case CpuTier::kAvx512Fp16:
      return "avx512fp16";
  }
  return "scalar";
}

std::optional<CpuTier> ParseCpuTier(std::string_view name) {
  for (const CpuTier tier : kAllTiers) {
    if (name == CpuTierName(tier)) return tier;
  }
  return std::nullopt;
}

std::vector<CpuTier> SupportedCpuTiers() {
  std::vector<CpuTier> tiers;
  for (const CpuTier tier : kAllTiers) {
    if (tier <= BestTier()) tiers.push_back(tier);
  }
  return tiers;
}

Result<CpuTier> ChooseCpuTier(std::optional<CpuTier> wanted) {
  const char* variable = std::getenv(kCpuTierVariable);
  if (!wanted && variable != nullptr && *variable != '\0') {
    wanted = ParseCpuTier(variable);
    if (!wanted) {
      return Fail(Code::kOutOfRange,
                  std::string(kCpuTierVariable) + " is '" + variable +
                      "', expected scalar, avx2, avx512 or avx512fp16",
                  {.flag = kCpuTierVariable});
    }
  }
  if (!wanted) return BestTier();
  if (*wanted > BestTier()) {
    return Fail(Code::kUnsupported, "this machine's best tier is " +
                                        std::string(CpuTierName(BestTier())) + ", not " +
                                        std::string(CpuTierName(*wanted)));
  }
  return *wanted;
}

}  // namespace hallmark
