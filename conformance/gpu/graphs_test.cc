// SPDX-License-Identifier: Apache-2.0
// Rounds that are replayed as graphs against the same rounds launched one by one: every logit and
// the state. The case is that of receipts; here it runs in sessions that have run nothing before.
// Clause graph-equals-eager.
#include <gtest/gtest.h>

#include <string>
#include <tuple>

#include "conformance/cases/graph_equals_eager.h"
#include "conformance/gpu/gpu_session.h"

namespace hallmark {
namespace {

class Graphs : public testing::TestWithParam<std::tuple<const char*, KvType>> {};

TEST_P(Graphs, ReplayedRoundsEqualEagerOnes) {
  const auto [name, kv] = GetParam();
  const auto session = OpenOnDevice(GoldenModelPath(name), {.kv = kv});
  ASSERT_TRUE(session.has_value()) << session.error().ToString();
  const CaseSubject subject{.session = session->get(), .golden = GoldenPath("")};
  EXPECT_EQ(WhyNotPassed(CompareGraphsWithEager(subject), name), "");
}

INSTANTIATE_TEST_SUITE_P(Golden, Graphs,
                         testing::Combine(testing::Values(kScribe, kPrism),
                                          testing::Values(KvType::kBf16, KvType::kFp8E4m3)),
                         [](const testing::TestParamInfo<Graphs::ParamType>& info) {
                           const std::string name = std::get<0>(info.param);
                           return name.substr(0, name.find('-')) + "_" +
                                  KvName(std::get<1>(info.param));
                         });

}  // namespace
}  // namespace hallmark
