// SPDX-License-Identifier: Apache-2.0
#include "conformance/cases/exl3_truth.h"

#include <charconv>
#include <cstring>
#include <nlohmann/json.hpp>

#include "engine/base/json.h"
#include "engine/format/safetensors.h"

namespace hallmark {
namespace {

constexpr int kTilesPerSide = kExl3Block / kTileSide;

// Integers, or fp16 patterns as four hex digits, as 16-bit values; empty when one is neither.
std::vector<uint16_t> WordsOf(const Json& list) {
  std::vector<uint16_t> words;
  for (const Json& item : list) {
    if (item.is_number_integer()) {
      const int64_t value = item.get<int64_t>();
      if (value < -32768 || value > 65535) return {};
      words.push_back(static_cast<uint16_t>(value));
    } else if (item.is_string()) {
      const std::string& hex = item.get_ref<const std::string&>();
      uint16_t value = 0;
      const auto [end, error] = std::from_chars(hex.data(), hex.data() + hex.size(), value, 16);
      if (error != std::errc() || end != hex.data() + hex.size() || hex.size() != 4) return {};
      words.push_back(value);
    } else {
      return {};
    }
  }
  return words;
}

Result<std::vector<uint16_t>> ReadList(const Json& tile, const char* name, size_t count,
                                       Locator where) {
  where.pointer += std::string("/") + name;
  if (!tile.contains(name) || !tile[name].is_array()) {
    return Fail(Code::kMalformed, "expected a list", where);
  }
  std::vector<uint16_t> words = WordsOf(tile[name]);
  if (words.size() != count) {
    return Fail(Code::kMalformed,
                "found " + std::to_string(words.size()) + " 16-bit values, expected " +
                    std::to_string(count),
                where);
  }
  return words;
}

Result<std::vector<uint16_t>> ReadTensor(const SafetensorsFile& file, const std::string& name,
                                         DType dtype, size_t count) {
  const TensorView* tensor = file.Find(name);
  if (tensor == nullptr) {
    return Fail(Code::kMalformed, "the vector file lacks a tensor",
                {.file = file.path(), .tensor = name});
  }
  if (tensor->dtype != dtype || tensor->bytes.size() != count * sizeof(uint16_t)) {
    return Fail(Code::kMalformed,
                "found " + std::string(DTypeName(tensor->dtype)) + " " + ShapeText(tensor->shape) +
                    ", expected " + std::string(DTypeName(dtype)) + " with " +
                    std::to_string(count) + " values",
                tensor->where());
  }
  std::vector<uint16_t> values(count);
  std::memcpy(values.data(), tensor->bytes.data(), tensor->bytes.size());
  return values;
}

}  // namespace

std::string BitsText(int k2) { return std::to_string(k2 / 2) + (k2 % 2 == 1 ? ".5" : ""); }

Result<Exl3TileTruth> ReadTileTruth(const std::string& golden, Exl3Rate rate) {
  const std::string path = golden + "/format/exl3_vectors.json";
  const Json json = TRY(ReadJsonFile(path));
  if (!json.is_object() || !json.contains("tiles") || !json["tiles"].is_array()) {
    return Fail(Code::kMalformed, "expected a list of tiles", {.file = path, .pointer = "/tiles"});
  }
  for (size_t i = 0; i < json["tiles"].size(); ++i) {
    const Json& tile = json["tiles"][i];
    const Locator where{.file = path, .pointer = "/tiles/" + std::to_string(i)};
    if (!tile.is_object() || !tile.contains("codebook") || !tile.contains("bits") ||
        !tile["bits"].is_number()) {
      return Fail(Code::kMalformed, "expected a codebook and a width", where);
    }
    if (tile["codebook"] != CodebookName(rate.codebook)) continue;
    if (tile["bits"].get<double>() != rate.k2 / 2.0) continue;
    Exl3TileTruth truth;
    truth.words = TRY(ReadList(tile, "words_i16", TileWords(rate.k2), where));
    truth.states = TRY(ReadList(tile, "states", kTileWeights, where));
    truth.values = TRY(ReadList(tile, "values_f16", kTileWeights, where));
    return truth;
  }
  return Fail(Code::kMalformed,
              "the file holds no tile of " + std::string(CodebookName(rate.codebook)) + " at " +
                  BitsText(rate.k2) + " bits",
              {.file = path, .pointer = "/tiles"});
}

Result<Exl3LayerTruth> ReadLayerTruth(const std::string& golden, Exl3Rate rate) {
  const SafetensorsFile file =
      TRY(SafetensorsFile::Open(golden + "/kernel/exl3_reconstruct.safetensors"));
  const std::string prefix = std::string(CodebookName(rate.codebook)) + "_" + BitsText(rate.k2);
  Exl3LayerTruth truth;
  truth.trellis =
      TRY(ReadTensor(file, prefix + "_trellis", DType::kI16,
                     static_cast<size_t>(kTilesPerSide * kTilesPerSide * TileWords(rate.k2))));
  truth.values = TRY(ReadTensor(file, prefix + "_w", DType::kF16, size_t{kExl3Block} * kExl3Block));
  return truth;
}

Exl3LayerTruth LayerOfOneTile(const Exl3TileTruth& tile) {
  Exl3LayerTruth layer;
  for (int i = 0; i < kTilesPerSide * kTilesPerSide; ++i) {
    layer.trellis.insert(layer.trellis.end(), tile.words.begin(), tile.words.end());
  }
  for (int row = 0; row < kExl3Block; ++row) {
    for (int column = 0; column < kExl3Block; ++column) {
      layer.values.push_back(tile.values[(row % kTileSide) * kTileSide + column % kTileSide]);
    }
  }
  return layer;
}

}  // namespace hallmark
