// SPDX-License-Identifier: Apache-2.0
// The reference reader gives the published files their verdicts and tables, so that what the reader
// is compared with is held to them as well.
#include "fuzz/reference/safetensors_reference.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "conformance/harness/paths.h"
#include "engine/base/json.h"

namespace hallmark::reference {
namespace {

std::string FromHex(const std::string& hex) {
  std::string bytes;
  for (size_t i = 0; i + 1 < hex.size(); i += 2) {
    bytes += static_cast<char>(std::stoi(hex.substr(i, 2), nullptr, 16));
  }
  return bytes;
}

TEST(SafetensorsReference, GivesThePublishedVerdicts) {
  const auto vectors = ReadJsonFile(GoldenPath("format/safetensors_files.json"));
  ASSERT_TRUE(vectors.has_value());
  int accepted = 0;
  int refused = 0;
  for (const Json& item : (*vectors)["cases"]) {
    SCOPED_TRACE(item["id"].get<std::string>());
    const Json& expect = item["expect"];
    const auto table = ReadSafetensors(FromHex(item["file"]));
    ASSERT_EQ(table.has_value(), expect["verdict"] == "accept");
    if (!table.has_value()) {
      ++refused;
      continue;
    }
    ++accepted;
    ASSERT_EQ(table->tensors.size(), expect["tensors"].size());
    for (const Json& wanted : expect["tensors"]) {
      const auto at = table->tensors.find(wanted["name"].get<std::string>());
      ASSERT_NE(at, table->tensors.end());
      EXPECT_EQ(at->second.dtype, wanted["dtype"].get<std::string>());
      EXPECT_EQ(at->second.shape, wanted["shape"].get<std::vector<uint64_t>>());
      EXPECT_EQ(at->second.end - at->second.begin,
                wanted["end"].get<uint64_t>() - wanted["begin"].get<uint64_t>());
    }
  }
  EXPECT_EQ(accepted, 9);
  EXPECT_EQ(refused, 64);
}

}  // namespace
}  // namespace hallmark::reference
