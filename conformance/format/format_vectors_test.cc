// SPDX-License-Identifier: Apache-2.0
// Clauses format-accept and format-reject on the vectors that any reader can run.
#include <gtest/gtest.h>

#include <cstring>
#include <nlohmann/json.hpp>

#include "conformance/harness/paths.h"
#include "engine/base/json.h"
#include "engine/format/exl3_group.h"
#include "engine/format/quantization_config.h"
#include "engine/format/safetensors.h"

namespace hallmark {
namespace {

TEST(FormatVectors, PublishedGroupHeadersGetTheirVerdict) {
  const auto vectors = ReadJsonFile(GoldenPath("format/exl3_vectors.json"));
  ASSERT_TRUE(vectors.has_value());
  int accepted = 0;
  int refused = 0;
  for (const Json& group : (*vectors)["group_cases"]) {
    const std::string why = group["why"];
    std::vector<std::string> storage;
    std::vector<TensorView> tensors;
    storage.reserve(group["tensors"].size());
    for (const auto& [suffix, tensor] : group["tensors"].items()) {
      TensorView view{.name = "p." + suffix, .dtype = *ParseDType(std::string(tensor["dtype"]))};
      view.shape = tensor["shape"].get<std::vector<int64_t>>();
      const size_t bytes = static_cast<size_t>(view.elements() * DTypeSize(view.dtype));
      std::string& data = storage.emplace_back(bytes, '\0');
      const uint32_t value = suffix == "mcg" ? kMcgMultiplier : kMul1Multiplier;
      if ((suffix == "mcg" || suffix == "mul1") && bytes >= 4) std::memcpy(data.data(), &value, 4);
      view.bytes = std::as_bytes(std::span(data));
      tensors.push_back(std::move(view));
    }
    const auto parsed = ParseExl3Group("p", tensors);
    const bool expect = group["expect"] == "accept";
    EXPECT_EQ(parsed.has_value(), expect) << why;
    EXPECT_TRUE(expect || !parsed.error().where.tensor.empty()) << why;
    ++(expect ? accepted : refused);
  }
  EXPECT_EQ(accepted, 6);
  EXPECT_EQ(refused, 22);
}

std::string FromHex(const std::string& hex) {
  std::string bytes;
  for (size_t i = 0; i + 1 < hex.size(); i += 2) {
    bytes += static_cast<char>(std::stoi(hex.substr(i, 2), nullptr, 16));
  }
  return bytes;
}

void ExpectTensors(const SafetensorsTable& table, const Json& expect, size_t file_bytes) {
  ASSERT_EQ(table.tensors.size(), expect.size());
  uint64_t data_bytes = 0;
  for (const Json& tensor : expect) {
    data_bytes = std::max(data_bytes, tensor["end"].get<uint64_t>());
  }
  for (const Json& tensor : expect) {
    const TensorView* view = FindTensor(table.tensors, tensor["name"].get<std::string>());
    ASSERT_NE(view, nullptr);
    EXPECT_EQ(DTypeName(view->dtype), tensor["dtype"].get<std::string>());
    EXPECT_EQ(view->shape, tensor["shape"].get<std::vector<int64_t>>());
    const auto begin = tensor["begin"].get<uint64_t>();
    EXPECT_EQ(view->bytes.size(), tensor["end"].get<uint64_t>() - begin);
    EXPECT_EQ(view->file_offset, file_bytes - data_bytes + begin);
  }
}

TEST(FormatVectors, WholeSafetensorsFilesGetTheirVerdictAndPlace) {
  const auto vectors = ReadJsonFile(GoldenPath("format/safetensors_files.json"));
  ASSERT_TRUE(vectors.has_value());
  int accepted = 0;
  int refused = 0;
  for (const Json& item : (*vectors)["cases"]) {
    SCOPED_TRACE(item["id"].get<std::string>());
    const std::string file = FromHex(item["file"]);
    const Json& expect = item["expect"];
    const auto table = ParseSafetensors(std::as_bytes(std::span(file)), "x");
    if (expect["verdict"] == "accept") {
      ++accepted;
      ASSERT_TRUE(table.has_value()) << table.error().ToString();
      ExpectTensors(*table, expect["tensors"], file.size());
      continue;
    }
    ++refused;
    ASSERT_FALSE(table.has_value());
    EXPECT_EQ(CodeName(table.error().code), expect["code"].get<std::string>());
    EXPECT_EQ(table.error().where.byte, expect["byte"].get<uint64_t>());
    EXPECT_EQ(table.error().where.tensor, expect["tensor"].get<std::string>());
  }
  EXPECT_EQ(accepted, 9);
  EXPECT_EQ(refused, 64);
}

}  // namespace
}  // namespace hallmark
