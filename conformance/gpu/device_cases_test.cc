// SPDX-License-Identifier: Apache-2.0
// Every case a receipt holds, L0 to L3 and the golden comparisons, on the device: golden models
// with their drafters, both cache types, pages poisoned. Any row that is not a pass is red.
#include <gtest/gtest.h>

#include <string>
#include <tuple>
#include <vector>

#include "conformance/cases/draft_golden.h"
#include "conformance/cases/levels.h"
#include "conformance/cases/model_golden.h"
#include "conformance/gpu/gpu_session.h"
#include "conformance/harness/registry.h"

namespace hallmark {
namespace {

void ExpectPass(const Result<Row>& result, const std::string& name) {
  EXPECT_EQ(WhyNotPassed(result, name), "");
}

struct DeviceSubject {
  const char* name;
  const char* model;
  const char* drafter;
  KvType kv;
};
constexpr DeviceSubject kSubjects[] = {
    {"scribe_bf16", kScribe, kScribeDrafter, KvType::kBf16},
    {"scribe_fp8", kScribe, kScribeDrafter, KvType::kFp8E4m3},
    {"prism_bf16", kPrism, kPrismDrafter, KvType::kBf16},
    {"prism_fp8", kPrism, kPrismDrafter, KvType::kFp8E4m3},
};
// A level by its name, or "golden".
constexpr const char* kParts[] = {"L0", "L1", "L2", "L3", "golden"};

Status AddPart(const std::string& part, const DeviceSubject& names, const CaseSubject& subject,
               CaseRegistry& registry) {
  if (const auto level = ParseLevel(part)) {
    TRY(AddLevelCases(*level, subject, registry));
    return AddBackendCases(*level, kSuiteDevice, subject, registry);
  }
  TRY(AddModelGoldenCases(subject, names.model, registry));
  return AddDraftGoldenCases(subject, names.drafter, registry);
}

class DeviceCases : public testing::TestWithParam<std::tuple<DeviceSubject, const char*>> {};

TEST_P(DeviceCases, Pass) {
  const auto& [names, part] = GetParam();
  auto session = OpenOnDevice(
      GoldenModelPath(names.model),
      {.kv = names.kv, .drafter = GoldenModelPath(names.drafter), .poison_pages = true});
  ASSERT_TRUE(session.has_value()) << session.error().ToString();
  ASSERT_EQ((*session)->backend_name(), kSuiteDevice);
  const CaseSubject subject{.session = session->get(), .golden = GoldenPath("")};
  CaseRegistry registry;
  const Status added = AddPart(part, names, subject, registry);
  ASSERT_TRUE(added.has_value()) << added.error().ToString();
  const std::vector<Row> rows = registry.Run("", {});
  ASSERT_FALSE(rows.empty());
  EXPECT_EQ(rows.size(), registry.Names().size());
  for (const Row& row : rows) ExpectPass(row, row.clause + "/" + row.case_name);
}

INSTANTIATE_TEST_SUITE_P(Golden, DeviceCases,
                         testing::Combine(testing::ValuesIn(kSubjects), testing::ValuesIn(kParts)),
                         [](const auto& info) {
                           return std::string(std::get<0>(info.param).name) + "_" +
                                  std::get<1>(info.param);
                         });

}  // namespace
}  // namespace hallmark
